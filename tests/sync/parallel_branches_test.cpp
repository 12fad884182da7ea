// Which worker runs the branches of a fork, and when: what lies in the deques, and who takes it.

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/parallel_invoke.hpp>
#include <ulexite/sync/task_group.hpp>

#include "support/runtime_fixture.hpp"

#include <cstdint>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ParallelBranches : public WorkersTest {};
ULEXITE_TEST_WORKERS(ParallelBranches);

// More branches than a deque holds: the rest are plain calls.
long nest(int depth) {
  if (depth == 0) return 1;
  long a = 0, b = 0;
  parallel_invoke([&] { a = nest(depth - 1); }, [&] { b = 1; });
  return a + b;
}

TEST(ParallelBranchesDeep, NestedDeeperThanTheDeque) {
  for (const std::size_t workers : {1, 4}) {
    runtime rt({.threads = workers, .stack_size = 4 << 20});
    EXPECT_EQ(rt.run([] { return nest(3000); }), 3001);
  }
}

#ifndef ULEXITE_DEBUG_MIGRATE  // with which a worker's fibers are all in the shared queue, behind the branches

// Of a pile of branches one is taken while their fiber is away: the others stay what they are.
long wait_at_the_end_of(int depth) {
  if (depth == 0) {
    event taken;
    parallel_invoke([&] { taken.wait(); }, [&] { taken.set(); });
    return 0;
  }
  long below = 0, one = 0;
  parallel_invoke([&] { below = wait_at_the_end_of(depth - 1); }, [&] { one = 1; });
  return below + one;
}

TEST_P(ParallelBranches, WhatWasNotTakenStaysACall) {
  if (GetParam() != 1) return;  // others may take them all
  run([this] {
    const auto before = rt().metrics().fibers_spawned;
    const auto start = ulexite::steady_clock::now();
    EXPECT_EQ(wait_at_the_end_of(100), 100);
    // Between dispatches that take more than 50 us each the worker does its maintenance, and takes the oldest then.
    const auto slow = static_cast<std::uint64_t>((ulexite::steady_clock::now() - start) / 50us);
    EXPECT_LT(rt().metrics().fibers_spawned - before, 10u + slow);
  });
}

// Above the branch of a waiting fiber are many branches of another fiber. Its worker never runs out of fibers.
template <class F>
void pile_up(int branches, F& leaf, std::atomic<int>& called) {
  if (branches == 0) return leaf();
  parallel_invoke([&] { pile_up(branches - 1, leaf, called); }, [&] { ++called; });
}

TEST_P(ParallelBranches, AWorkerWithFibersTakesTheOldestBranchFirst) {
  if (GetParam() != 1) return;  // others may take any
  run([] {
    bool was_piled_up = false;
    // The worker may look too early, and under ThreadSanitizer it always does: there a visit follows each dispatch.
    for (int tries = 0; tries < 1000 && !was_piled_up; ++tries) {
      bool piled_up = false, done = false;
      std::atomic<int> called{0};
      int before = -1;
      const auto leaf = [&] {
        piled_up = true;
        while (!done) this_fiber::yield();
      };
      auto other = spawn([&] { pile_up(100, leaf, called); });
      event taken;
      parallel_invoke([&] { taken.wait(); },
                      [&] {
                        before = called;
                        was_piled_up = piled_up;
                        done = true;
                        taken.set();
                      });
      other.join();
      if (was_piled_up) EXPECT_EQ(before, 0);
    }
  });
}

#endif

// A worker that never runs out of fibers runs branches too, however much waits in the shared queue.
TEST_P(ParallelBranches, BranchesAreNotStarvedByFibers) {
  run([] {
    std::atomic<bool> called{false};
    task_group all;
    for (int i = 0; i < 1500; ++i)  // more than the worker's queue holds
      all.spawn([&] {
        while (!called) this_fiber::yield();
      });
    event taken;
    parallel_invoke([&] { taken.wait(); },
                    [&] {
                      called = true;
                      taken.set();
                    });
    all.wait();
  });
}

// The forking fiber never reaches a scheduling point.
TEST_P(ParallelBranches, OthersTakeTheBranchesOfAHog) {
  if (GetParam() == 1) return;  // there are no others
  run([] {
    for (int round = 0; round < 20; ++round) {
      std::atomic<bool> called{false};
      parallel_invoke([&] { EXPECT_TRUE(hog_until([&] { return called.load(); })); }, [&] { called = true; });
    }
  });
}

// It waits, and its worker is kept by another.
TEST_P(ParallelBranches, OthersTakeTheBranchesThatLieBehindAHog) {
  if (GetParam() == 1) return;
  run([] {
    for (int round = 0; round < 20; ++round) {
      std::atomic<bool> called{false};
      event taken;
      join_handle<> hog;
      parallel_invoke(
          [&] {
            hog = spawn([&] { EXPECT_TRUE(hog_until([&] { return called.load(); })); });
            taken.wait();
          },
          [&] {
            called = true;
            taken.set();
          });
      hog.join();
    }
  });
}

// The caller continues on another worker; its branches stay on the first.
TEST_P(ParallelBranches, BlocksInPlaceInABranch) {
  run([] {
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> called{0};
      const auto block = [&] {
        block_in_place([&] {
          std::this_thread::yield();
          parallel_invoke([&] { ++called; }, [&] { ++called; });  // on a plain thread: one after the other
        });
      };
      parallel_invoke(block, block, [&] { parallel_invoke(block, [&] { ++called; }); });
      EXPECT_EQ(called, 7);
    }
  });
}

// Branches are in the deques, and stolen ones are under way, when the runtime ends.
TEST_P(ParallelBranches, TheRuntimeMayEndInTheMidstOfIt) {
  for (const auto mode : {shutdown_mode::drain, shutdown_mode::cancel, shutdown_mode::abandon})
    for (int round = 0; round < 10; ++round) {
      auto& home = make(GetParam());
      std::atomic<int> begun{0}, returned{0};
      for (int i = 0; i < 4; ++i)
        home.spawn([&] {
              parallel_invoke([&] { this_fiber::yield(); },
                              [&] {
                                ++begun;
                                parallel_invoke([] { this_fiber::sleep_for(100us); }, [] { this_fiber::yield(); });
                              },
                              [] { this_fiber::sleep_for(100us); });
              ++returned;
            })
            .detach();
      while (begun == 0) std::this_thread::yield();
      const std::size_t left = end(home, mode);
      if (mode != shutdown_mode::abandon) EXPECT_EQ(left, 0u);
      if (mode == shutdown_mode::drain) EXPECT_EQ(returned, 4);
    }
}

}  // namespace
