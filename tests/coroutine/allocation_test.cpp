// How often coroutines call operator new, once all is warm: for each frame, and for the timer of a wait with a time.

#include "../sync/allocation_fixture.hpp"
#include "ways.hpp"

#include <ulexite/net/tcp.hpp>

#include <sys/socket.h>

#include <cstdlib>
#include <mutex>
#include <new>

using ulexite::test::allocations;

#if !ULEXITE_ASAN && !ULEXITE_TSAN
void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] static void release(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
#endif

namespace {

using namespace ulexite;
using namespace ulexite::test;

// With one worker each step comes in the same order every time.
class CoAllocation : public OneRuntimeTest {
 protected:
  CoAllocation() : OneRuntimeTest(1) {}
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the sanitizer brings its own operator new";
  }

  static constexpr int rounds = 200;

  // How often body(rounds), a task, allocates.
  template <class F>
  long count(F body) {
    return rt()
        .spawn([&]() -> task<long> {
          co_await body(rounds);
          const long before = allocations;
          co_await body(rounds);
          co_return allocations - before - 1;  // the frame of `body`
        })
        .get();
  }
  // Each round allocates `each` times. With optimization a compiler may leave frames out.
  template <class F>
  void expect_each(long each, F body) {
    const long all = count(body);
#ifdef __OPTIMIZE__
    EXPECT_LE(all, each * rounds);
#else
    EXPECT_EQ(all, each * rounds);
#endif
  }
};

TEST_F(CoAllocation, ATaskIsOneFrame) {
  const auto nothing = []() -> task<> { co_return; };
  expect_each(1, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) co_await nothing();
  });
  expect_each(1, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) {
      auto child = co_spawn(nothing());
      co_await co_get(child);
    }
  });
}

TEST_F(CoAllocation, AChannelNeedsNone) {
  channel<int> buffered(16), there, back;
  expect_each(0, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) {
      co_await co_send(buffered, i);
      EXPECT_EQ(co_await co_receive(buffered), i);
    }
  });
  auto echoes = rt().spawn([&]() -> task<> {
    while (const auto got = co_await co_receive(there)) co_await co_send(back, *got);
  });
  expect_each(0, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) {
      co_await co_send(there, i);
      EXPECT_EQ(co_await co_receive(back), i);
    }
  });
  there.close();
  echoes.get();
}

TEST_F(CoAllocation, ALockNeedsNone) {
  mutex guard;
  expect_each(0, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) const auto mine = co_await co_lock(guard);
  });
  std::atomic<bool> over{false};
  auto competes = rt().spawn([&]() -> task<> {
    while (!over) {
      const auto mine = co_await co_lock(guard);
      co_await co_yield_now();
    }
  });
  expect_each(0, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) {
      const auto mine = co_await co_lock(guard);
      co_await co_yield_now();
    }
  });
  over = true;
  competes.get();
}

TEST_F(CoAllocation, AWaitWithATimeNeedsItsTimer) {
  auto_reset_event asked, answered;
  ulexite::event always(true);
  auto answers = rt().spawn([&]() -> task<> {
    for (;;) {
      co_await co_wait(asked);
      answered.set();
    }
  });
  expect_each(1, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) {
      asked.set();
      EXPECT_TRUE(co_await co_wait_for(answered, 1h));
    }
  });
  expect_each(0, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) EXPECT_TRUE(co_await co_wait_for(always, 1h));
  });
  const long sleeps = count([](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) co_await co_sleep_for(100us);
  });
  EXPECT_GT(sleeps, 0);
  EXPECT_LE(sleeps, rounds);  // a time that is over at once needs none
  answers.request_stop();
  answers.join();
}

TEST_F(CoAllocation, ASocketNeedsNone) {
  int both[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
  auto here = net::tcp_stream::adopt(both[0]), there = net::tcp_stream::adopt(both[1]);
  auto echoes = rt().spawn([&]() -> task<> {
    for (char data;;) {
      co_await co_readable(there);
      if (co_await co_read_some(there, &data, 1) == 0) co_return;
      co_await co_write(there, &data, 1);
    }
  });
  expect_each(0, [&](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) {
      char data = 'x';
      co_await co_write(here, &data, 1);
      EXPECT_EQ(co_await co_read_some(here, &data, 1), 1u);
    }
  });
  here.close();
  echoes.get();
}

TEST_F(CoAllocation, ACallElsewhereIsOneFrame) {
  expect_each(1, [](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) EXPECT_EQ(co_await on_fiber([i] { return i; }), i);
  });
  expect_each(1, [](int rounds) -> task<> {
    for (int i = 0; i < rounds; ++i) EXPECT_EQ(co_await co_blocking([i] { return i; }), i);
  });
}

// Waits without a limit, once they are warm: their places are in the frames.
class CoNoAllocation : public NoAllocation {
 protected:
  static constexpr int rounds = 2000;

  // Two coroutines, left(n) and right(n), do n rounds in step. After some warm-up they allocate no more than their own
  // frames.
  template <class L, class R>
  void expect_frames_only(L left, R right) {
    run([&] {
      start_all_workers();
      std::atomic<int> ready{0};
      ulexite::event measure;
      task_group all;
      const auto both = [&](auto& side) -> task<> {
        co_await side(rounds);
        ++ready;
        co_await co_wait(measure);
        co_await side(rounds);
      };
      all.spawn([&] { return both(left); });
      all.spawn([&] { return both(right); });
      wait_until([&] { return ready == 2; });
      const long before = allocations;
      measure.set();
      all.wait();
      EXPECT_LE(allocations - before, 2) << "the frames of left and right";
    });
  }
};
ULEXITE_TEST_WORKERS(CoNoAllocation);

TEST_P(CoNoAllocation, InARendezvous) {
  channel<int> values;
  expect_frames_only(
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) co_await co_send(values, i);
      },
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) EXPECT_EQ(co_await co_receive(values), i);
      });
}

TEST_P(CoNoAllocation, InASelect) {
  channel<int> there, back;
  expect_frames_only(
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) {
          co_await co_select(on_send(there, i), on_receive(back, [](auto) { ADD_FAILURE(); }));
          EXPECT_EQ(co_await co_receive(back), i);
        }
      },
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) {
          EXPECT_EQ(co_await co_receive(there), i);
          co_await co_send(back, i);
        }
      });
}

TEST_P(CoNoAllocation, InLocks) {
  mutex guard;
  shared_mutex shared;
  const auto lock_often = [&](int n) -> task<> {
    for (int i = 0; i < n; ++i) {
      {
        const auto lock = co_await co_lock(guard);
        if (i % 8 == 0) co_await co_yield_now();
      }
      if (i % 2) {
        const auto lock = co_await co_lock(shared);
      } else {
        const auto lock = co_await co_lock_shared(shared);
      }
    }
  };
  expect_frames_only(lock_often, lock_often);
}

TEST_P(CoNoAllocation, InAConditionVariable) {
  mutex guard;
  condition_variable changed;
  bool turn = false;
  const auto take_turns = [&](bool mine) {
    return [&, mine](int n) -> task<> {
      for (int i = 0; i < n; ++i) {
        auto lock = co_await co_lock(guard);
        while (turn != mine) co_await co_wait(changed, lock);
        turn = !mine;
        changed.notify_one();
      }
    };
  };
  expect_frames_only(take_turns(true), take_turns(false));
}

TEST_P(CoNoAllocation, InWhatCounts) {
  counting_semaphore<> permits(0);
  auto_reset_event taken;
  expect_frames_only(
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) {
          permits.release();
          co_await co_wait(taken);
        }
      },
      [&](int n) -> task<> {
        for (int i = 0; i < n; ++i) {
          co_await co_acquire(permits);
          taken.set();
        }
      });
}

}  // namespace
