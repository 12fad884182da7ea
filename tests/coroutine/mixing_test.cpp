// Coroutines that do what only fibers with a stack do elsewhere: block, belong to a strand, stay on a thread.

#include "ways.hpp"

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoMixing : public WorkersTest {};
ULEXITE_TEST_WORKERS(CoMixing);

// Opaque: an address or value of a thread may not be kept over a wait.
[[gnu::noinline]] std::thread::id here() { return std::this_thread::get_id(); }

// Waits in the n-th way, alternately with and without its stack.
task<> wait_in_some_way(int n, channel<int>& ring) {
  switch (n % 8) {
    case 0: co_await co_yield_now(); break;
    case 1: this_fiber::yield(); break;
    case 2: co_await co_sleep_for(1us); break;
    case 3: this_fiber::sleep_for(1us); break;
    case 4:
      co_await co_send(ring, 1);
      (void)ring.receive();
      break;
    case 5:
      ring.send(1);
      (void)co_await co_receive(ring);
      break;
    case 6: spawn([] {}).join(); break;
    default: co_await co_get(spawn([]() -> task<> { co_await co_yield_now(); }));
  }
}

TEST_P(CoMixing, BlockingCallsKeepTheFiber) {
  run([] {
    channel<int> ring(4);
    static fiber_local<std::string> mine;
    std::vector<join_handle<>> all;
    for (int i = 0; i < 12; ++i)
      all.push_back(spawn({.name = "mixed " + std::to_string(i)}, [&, i]() -> task<> {
        const auto id = this_fiber::id();
        *mine = std::to_string(i);
        std::array<char, 500> local;
        local.fill(static_cast<char>(i));
        for (int k = 0; k < 64; ++k) {
          co_await wait_in_some_way(i + k, ring);
          EXPECT_EQ(this_fiber::id(), id);
          EXPECT_EQ(this_fiber::name(), "mixed " + std::to_string(i));
          EXPECT_EQ(*mine, std::to_string(i));
          EXPECT_EQ(local[static_cast<std::size_t>(k)], static_cast<char>(i));
        }
      }));
    for (auto& each : all) each.get();
  });
}

TEST_P(CoMixing, BlockingCallsAreCancellationPoints) {
  channel<int> never;
  auto waits = spawn_until_it_waits(rt(), [&]() -> task<> {
    co_await co_yield_now();
    (void)never.receive();
  });
  waits.request_stop();
  EXPECT_THROW(waits.get(), operation_cancelled);
}

TEST_P(CoMixing, AFunctionBelowATaskAwaitsTasks) {
  const auto leaf = [](int depth) -> task<int> {
    co_await co_sleep_for(1us);
    co_return depth;
  };
  const auto below = [&](auto self, int depth) -> task<int> {
    if (depth == 0) co_return co_await leaf(1);
    co_await co_yield_now();
    co_return await(self(self, depth - 1)) + await(leaf(1));  // on the stack
  };
  EXPECT_EQ(rt().spawn([&] { return below(below, 10); }).get(), 11);
}

// What only the members of a strand use needs no lock, and is no data race.
TEST_P(CoMixing, CoroutinesTakeTurnsInAStrand) {
  run([] {
    concurrent_context strand("counts");
    long number = 0;
    bool inside = false;
    std::vector<join_handle<>> all;
    const int each = times(300);
    for (int i = 0; i < 12; ++i) {
      const auto step = [&] {
        EXPECT_FALSE(std::exchange(inside, true));
        ++number;
        inside = false;
      };
      if (i % 3 == 0) {
        all.push_back(strand.spawn([=] {
          for (int k = 0; k < each; ++k) step(), this_fiber::yield();
        }));
      } else {
        all.push_back(strand.spawn([=]() -> task<> {
          for (int k = 0; k < each; ++k) {
            step();
            if (k % 50 == 0) co_await co_sleep_for(1us);
            co_await co_yield_now();
          }
          auto child = spawn([=]() -> task<> {  // a member too
            step();
            co_return;
          });
          co_await co_join(child);
          step();
        }));
      }
    }
    for (auto& one : all) one.get();
    EXPECT_EQ(number, 12L * each + 2 * 8);
    strand.wait();
  });
}

TEST_P(CoMixing, AStrandEndsItsCoroutines) {
  run([] {
    std::atomic<int> alive{0}, begun{0};
    {
      concurrent_context strand;
      for (int i = 0; i < 10; ++i)
        strand
            .spawn([&]() -> task<> {
              const lives here(alive);
              ++begun;
              co_await co_sleep_for(1h);
            })
            .detach();
      wait_until([&] { return begun == 10; });
    }
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(CoMixing, MigratesIntoAStrandAndOut) {
  run([] {
    concurrent_context strand;
    long number = 0;
    std::vector<join_handle<>> all;
    for (int i = 0; i < 8; ++i)
      all.push_back(spawn([&]() -> task<> {
        for (int k = 0; k < 20; ++k) {
          co_await co_yield_now();
          this_fiber::migrate_to(strand);
          for (int n = 0; n < 5; ++n) {
            ++number;
            co_await co_yield_now();
          }
          this_fiber::migrate_to(current_runtime());
        }
      }));
    for (auto& each : all) each.get();
    EXPECT_EQ(number, 800);
  });
}

TEST_P(CoMixing, AMigrationGuardKeepsTheThreadOverAwaits) {
  run([] {
    channel<int> ring(4);
    std::vector<join_handle<>> all;
    for (int i = 0; i < 12; ++i)
      all.push_back(spawn([&, i]() -> task<> {
        for (int round = 0; round < 5; ++round) {
          const no_migration_scope pinned;
          const std::thread::id mine = here();
          for (int k = 0; k < 40; ++k) {
            co_await wait_in_some_way(i + k, ring);
            EXPECT_EQ(here(), mine);
          }
        }
        co_await co_yield_now();
      }));
    for (auto& each : all) each.get();
  });
}

TEST_P(CoMixing, NoSuspendForbidsAwaitsThatWait) {
  const auto refused = [](auto operation) -> task<bool> {
    try {
      const no_suspend_scope stays;
      co_await co_yield_now();  // does nothing
      co_await operation();
    } catch (const usage_error& e) {
      co_return std::string(e.what()).find("mixing_test.cpp:") != std::string::npos;
    }
    co_return false;
  };
  run([&] {
    channel<int> values(1);
    values.send(1);
    ulexite::event set, unset;
    set.set();
    spawn([&]() -> task<> {
      EXPECT_TRUE(co_await refused([&] { return co_send(values, 2); }));
      EXPECT_TRUE(co_await refused([&] { return co_wait(unset); }));
      EXPECT_TRUE(co_await refused([] { return co_sleep_for(1h); }));
      EXPECT_FALSE(co_await refused([&] { return co_receive(values); }));
      EXPECT_FALSE(co_await refused([&] { return co_wait(set); }));
    }).get();
  });
}

TEST_P(CoMixing, BlocksInPlace) {
  run([] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 6; ++i)
      all.push_back(spawn([]() -> task<> {
        const auto id = this_fiber::id();
        for (int k = 0; k < 10; ++k) {
          co_await co_yield_now();
          block_in_place([] { std::this_thread::sleep_for(50us); });
          EXPECT_EQ(blocking([] { return 5; }), 5);
          EXPECT_EQ(this_fiber::id(), id);
        }
      }));
    for (auto& each : all) each.get();
  });
}

// An operation that is always ready counts towards the budget, in a coroutine as in a fiber.
TEST_P(CoMixing, ACoroutineThatNeverWaitsLetsOthersRun) {
  run([&] {
    std::atomic<bool> over{false};
    const auto with_all = [&](auto operation) {
      over = false;
      std::vector<join_handle<>> busy;
      for (std::size_t i = 0; i < GetParam(); ++i)
        busy.push_back(spawn([&, operation]() -> task<> {
          while (!over) co_await operation();
        }));
      this_fiber::yield();
      spawn([&]() -> task<> {
        over = true;
        co_return;
      }).get();
      for (auto& each : busy) each.get();
    };
    ulexite::event set;
    set.set();
    counting_semaphore<> permits(1);
    channel<int> values(unbounded);
    mutex guard;
    with_all([&] { return co_wait(set); });
    with_all([&]() -> task<> {
      co_await co_acquire(permits);
      permits.release();
    });
    with_all([&]() -> task<> {
      co_await co_send(values, 1);
      (void)co_await co_receive(values);
    });
    with_all([&]() -> task<> { co_await co_select(on_set(set)); });
    with_all([&]() -> task<> { auto lock = co_await co_lock(guard); });
  });
}

TEST_P(CoMixing, AHogWithoutAwaitsDelaysNobodyOnOtherWorkers) {
  if (GetParam() == 1) GTEST_SKIP() << "there are none";
  run([] {
    std::atomic<int> ran{0};
    for (int i = 0; i < 10; ++i)
      spawn([&]() -> task<> {
        ++ran;
        co_return;
      }).detach();
    spawn([&]() -> task<> {
      EXPECT_TRUE(hog_until([&] { return ran == 10; }));
      co_return;
    }).get();
  });
}

TEST_P(CoMixing, ScopesOfDeadlinesNestOverAwaits) {
  run([] {
    spawn([]() -> task<> {
      const deadline_scope outer(1h);
      for (int i = 0; i < 3; ++i) {
        bool ended = false;
        try {
          const deadline_scope inner(100us);
          co_await co_sleep_for(1h);
        } catch (const deadline_exceeded&) {
          ended = true;
        }
        EXPECT_TRUE(ended);
        co_await co_sleep_for(1us);
        auto child = spawn([]() -> task<> { co_await co_sleep_for(1us); });
        co_await co_get(child);
      }
      EXPECT_FALSE(outer.expired());
    }).get();
  });
}

// The timer of a deadline belongs to one wait: the next has another.
TEST_P(CoMixing, ADeadlineOutlivesManyShortWaits) {
  run([] {
    ulexite::deadline_scope limit(1h);
    channel<int> there, back;
    auto echo = spawn([&]() -> task<> {
      while (const auto value = co_await co_receive(there)) co_await co_send(back, *value);
    });
    spawn([&]() -> task<> {
      for (int i = 0; i < times(2000); ++i) {
        co_await co_send(there, i);
        int got = -1;
        EXPECT_EQ(co_await co_receive_for(back, got, 1h), channel_status::ok);
        EXPECT_EQ(got, i);
      }
      there.close();
    }).get();
    echo.get();
  });
}

}  // namespace
