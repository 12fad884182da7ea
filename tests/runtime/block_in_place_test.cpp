// A fiber that blocks its thread hands its worker to another: at once, or when the monitor sees that the call lasts.

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/stopped_world.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker_parts/brief_call.hpp>
#include <ulexite/sync/blocking.hpp>

#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <cfenv>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class BlockInPlace : public WorkersTest {
 protected:
  // Stops a runtime while a fiber is in a call, which ends `delay` later. `block` makes the call.
  template <class Block>
  void stop_during_a_call(Block block, std::chrono::milliseconds delay) {
    std::binary_semaphore inside(0), gate(0);
    std::atomic<bool> left{false};
    runtime& rt = make(GetParam());
    rt.spawn([&] {
        block([&] {
          inside.release();
          gate.acquire();
          left = true;
        });
        for (;;) this_fiber::yield();
      }).detach();
    inside.acquire();
    std::jthread opener([&] {
      std::this_thread::sleep_for(delay);
      gate.release();
    });
    EXPECT_EQ(end(rt, shutdown_mode::abandon), 1u);
    EXPECT_TRUE(left);
  }
};
ULEXITE_TEST_WORKERS(BlockInPlace);

TEST_P(BlockInPlace, GivesValuesReferencesAndExceptions) {
  run([] {
    int x = 0;
    EXPECT_EQ(block_in_place([] { return 5; }), 5);
    EXPECT_EQ(&block_in_place([&]() -> int& { return x; }), &x);
    block_in_place([&] { x = 3; });
    EXPECT_EQ(x, 3);
    EXPECT_THROW(block_in_place([] { throw std::runtime_error("x"); }), std::runtime_error);
    EXPECT_TRUE(in_fiber());
    this_fiber::yield();
  });
}

TEST_P(BlockInPlace, IsAPlainThreadInside) {
  run([] {
    const auto id = this_fiber::id();
    EXPECT_FALSE(block_in_place([] { return in_fiber(); }));
    EXPECT_EQ(this_fiber::id(), id);
  });
}

// The address of errno must not be kept over a change of threads, but compilers do.
[[gnu::noinline]] int read_errno() {
  asm volatile("");
  return errno;
}

// All of the workers' fibers except one block until the last has run: only other threads can run that one.
TEST_P(BlockInPlace, OthersRunMeanwhile) {
  run([] {
    const auto blocking = GetParam() * 3;
    std::counting_semaphore<> gate(0);
    std::vector<join_handle<>> waiting;
    std::atomic<std::size_t> inside{0};
    for (std::size_t i = 0; i < blocking; ++i)
      waiting.push_back(spawn([&] {
        block_in_place([&] {
          ++inside;
          gate.acquire();
        });
      }));
    while (inside < blocking) this_fiber::yield();
    auto last = spawn([&] { gate.release(static_cast<std::ptrdiff_t>(blocking)); });
    last.join();
    for (auto& each : waiting) each.join();
  });
}

// The fibers behind the blocking one are in its worker's own queue.
TEST_P(BlockInPlace, WhatWaitsForTheWorkerGoesOn) {
  run([] {
    for (int round = 0; round < 50; ++round) {
      std::counting_semaphore<> done(0);
      std::vector<join_handle<>> behind;
      for (int i = 0; i < 5; ++i) behind.push_back(spawn([&] { done.release(); }));
      block_in_place([&] {
        for (int i = 0; i < 5; ++i) done.acquire();
      });
      for (auto& each : behind) each.join();
    }
  });
}

// The threads that keep workers are added to the limit.
TEST_P(BlockInPlace, BesideAnUnlimitedPool) {
  std::binary_semaphore gate(0);
  runtime& rt = make({.threads = GetParam(), .blocking_threads = SIZE_MAX});
  rt.run([&] {
    auto kept = spawn([&] { block_in_place([&] { gate.acquire(); }); });
    wait_until_others_wait();
    EXPECT_EQ(blocking([] { return 7; }), 7);
    gate.release();
    kept.join();
  });
}

TEST_P(BlockInPlace, NestedItIsAnOrdinaryCall) {
  run([] {
    const auto [outer, inner] = block_in_place([] {
      const auto here = std::this_thread::get_id();
      return std::pair(here, block_in_place([] { return std::this_thread::get_id(); }));
    });
    EXPECT_EQ(outer, inner);
  });
}

TEST_P(BlockInPlace, WhatIsTheFibersStaysWithIt) {
  run([] {
    const int rounding = std::fegetround();
    std::fesetround(FE_UPWARD);
    errno = 77;
    try {
      throw std::runtime_error("in flight");
    } catch (...) {
      block_in_place([] {
        try {
          throw std::logic_error("another");
        } catch (const std::logic_error&) {
        }
      });
      EXPECT_EQ(read_errno(), 77);
      EXPECT_EQ(std::fegetround(), FE_UPWARD);
      EXPECT_THROW(throw, std::runtime_error);
    }
    auto other = spawn([&] { return std::fegetround(); });
    EXPECT_EQ(other.get(), rounding);
    std::fesetround(rounding);
  });
}

TEST_P(BlockInPlace, AnExceptionThatPassesThroughIsTheSame) {
  run([] {
    const auto nested = [] {
      struct yields {
        ~yields() { this_fiber::yield(); }
      } const at_the_end;
      block_in_place([] { throw std::runtime_error("the one"); });
    };
    for (int i = 0; i < 20; ++i) {
      try {
        nested();
        ADD_FAILURE();
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "the one");
      }
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  });
}

TEST_P(BlockInPlace, NoMoreThreadsThanNeeded) {
  run([&] {
    for (int i = 0; i < 200; ++i) block_in_place([] {});
    // One is lent to each worker at most, and some are on their way; but not one for each call.
    EXPECT_LE(rt().metrics().blocking_threads, GetParam() + 20);
  });
}

TEST_P(BlockInPlace, ManyFibersAtATime) {
  run([] {
    std::atomic<int> sum{0};
    std::vector<join_handle<>> all;
    for (int i = 0; i < 40; ++i)
      all.push_back(spawn([&] {
        for (int k = 0; k < 25; ++k) {
          block_in_place([&] { ++sum; });
          if (k % 3 == 0) this_fiber::yield();
        }
      }));
    for (auto& each : all) each.join();
    EXPECT_EQ(sum, 1000);
  });
}

TEST_P(BlockInPlace, HooksSeeEachThreadThatBecomesAWorker) {
  std::atomic<int> balance{0}, starts{0};
  {
    runtime& rt = make({.threads = GetParam(),
                        .on_thread_start = [&](std::size_t) { ++starts, ++balance; },
                        .on_thread_stop = [&](std::size_t) { --balance; }});
    rt.run([] { block_in_place([] {}); });
    end(rt, shutdown_mode::drain);
  }
  EXPECT_EQ(balance, 0);
  EXPECT_GE(starts, 2);
}

// Now and then the stop comes before the thread that takes the worker over, or while that one starts another worker.
TEST_P(BlockInPlace, AStopOfTheRuntimeWaitsForIt) {
  for (int round = 0; round < 20; ++round) stop_during_a_call([](const auto& call) { block_in_place(call); }, 0ms);
}

// ---- brief calls ----

using detail::brief_call;
using detail::call_length;

class BriefCall : public BlockInPlace {};
ULEXITE_TEST_WORKERS(BriefCall);

// Whether such a call is under way without a worker.
bool any_lasts() { return detail::this_agent().fiber().runtime().brief_calls.any_lasts(); }

// A busy machine may make some of the calls long.
TEST_P(BriefCall, IsBrief) {
  run([] {
    int brief = 0;
    for (int i = 0; i < 100; ++i) brief += brief_call([] {}) == call_length::brief;
    EXPECT_GT(brief, 0);
  });
}

// On one worker only a thread that takes the worker over can run the fiber that ends the call.
TEST_P(BriefCall, WhenItLastsOthersGetTheWorker) {
  run([] {
    std::binary_semaphore gate(0);
    auto calling = spawn([&] {
      const auto id = this_fiber::id();
      const int rounding = std::fegetround();
      std::fesetround(FE_UPWARD);
      try {
        throw std::runtime_error("in flight");
      } catch (...) {
        const call_length length = brief_call([&] {
          gate.acquire();
          errno = 77;
        });
        EXPECT_EQ(length, call_length::lasting);
        EXPECT_EQ(read_errno(), 77);
        EXPECT_EQ(std::fegetround(), FE_UPWARD);
        EXPECT_THROW(throw, std::runtime_error);
      }
      std::fesetround(rounding);
      EXPECT_EQ(this_fiber::id(), id);
      EXPECT_TRUE(in_fiber());
      this_fiber::yield();
    });
    wait_until([] { return any_lasts(); });
    EXPECT_EQ(brief_call([] { ADD_FAILURE(); }), call_length::not_made);
    gate.release();
    calling.join();
    EXPECT_FALSE(any_lasts());
    wait_until([] { return brief_call([] {}) == call_length::brief; });
  });
}

TEST_P(BriefCall, AfterOneThatLastedNoneIsMadeForAWhile) {
  run([] {
    wait_until([] { return brief_call([] { std::this_thread::sleep_for(60ms); }) == call_length::lasting; });
    EXPECT_FALSE(any_lasts());
    EXPECT_EQ(brief_call([] { ADD_FAILURE(); }), call_length::not_made);
    wait_until([] { return brief_call([] {}) == call_length::brief; });
  });
}

// As calls that the system interrupts: they are long, but no other thread was needed.
TEST_P(BriefCall, AfterOnesThatTookTimeOthersAreMade) {
  run([] {
    int made = 0;
    wait_until([&] {
      const call_length length = brief_call([] { std::this_thread::sleep_for(2ms); });
      made = length == call_length::brief ? made + 1 : 0;
      return made == 10;
    });
  });
}

TEST_P(BriefCall, IsNotMadeWhereTheWorkerMustStay) {
  const auto refused = [] { return brief_call([] { ADD_FAILURE(); }) == call_length::not_made; };
  EXPECT_TRUE(refused());
  run([&] {
    {
      const no_migration_scope stays;
      EXPECT_TRUE(refused());
    }
    const no_suspend_scope stays;
    EXPECT_TRUE(refused());
  });
}

// A fiber in such a call has its registers in use, also when another thread has the worker.
TEST_P(BriefCall, AStopOfTheWorldWaitsForIt) {
  std::binary_semaphore inside(0), gate(0);
  auto calling = rt().spawn([&] {
    brief_call([&] {
      inside.release();
      gate.acquire();
    });
  });
  inside.acquire();
  EXPECT_THROW(const stopped_world stopped(rt(), 1ms), late_fibers);
  run([] { wait_until([] { return any_lasts(); }); });
  EXPECT_THROW(const stopped_world stopped(rt(), 50ms), late_fibers);
  gate.release();
  {
    const stopped_world stopped(rt(), std::chrono::minutes(1));
  }
  calling.join();
}

TEST_P(BriefCall, AStopOfTheRuntimeWaitsForIt) {
  for (int round = 0; round < 5; ++round)
    stop_during_a_call([](const auto& call) { brief_call(call); }, std::chrono::milliseconds(round * 10));
}

TEST(BlockInPlaceOutside, IsAnOrdinaryCallOnAPlainThread) {
  EXPECT_EQ(block_in_place([] { return 4; }), 4);
}

}  // namespace
