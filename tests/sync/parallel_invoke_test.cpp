// Functions called together, here or on the worker that took them.

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/parallel_invoke.hpp>
#include <ulexite/sync/wait_group.hpp>

#include "support/runtime_fixture.hpp"

#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ParallelInvoke : public WorkersTest {};
ULEXITE_TEST_WORKERS(ParallelInvoke);

long fib(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
  parallel_invoke([&] { a = fib(n - 1); }, [&] { b = fib(n - 2); });
  return a + b;
}

TEST_P(ParallelInvoke, CallsEachOnce) {
  run([] {
    for (int round = 0; round < 2000; ++round) {
      std::atomic<int> called[5] = {};
      parallel_invoke([&] { ++called[0]; }, [&] { ++called[1]; }, [&] { ++called[2]; }, [&] { ++called[3]; },
                      [&] { ++called[4]; });
      for (auto& times : called) ASSERT_EQ(times, 1);
    }
  });
}

TEST_P(ParallelInvoke, Recursion) {
  EXPECT_EQ(run([] { return fib(22); }), 17711);
}

TEST_P(ParallelInvoke, OneFunctionIsACall) {
  run([] {
    int called = 0;
    parallel_invoke([&] { ++called; });
    EXPECT_EQ(called, 1);
  });
}

// Each function waits for the others, so all must be under way at the same time, even on one worker.
TEST_P(ParallelInvoke, FunctionsMayWaitForEachOther) {
  run([] {
    for (int round = 0; round < 200; ++round) {
      channel<int> ab, bc, ca;
      parallel_invoke(
          [&] {
            ab.send(1);
            EXPECT_EQ(ca.receive(), 3);
          },
          [&] {
            EXPECT_EQ(ab.receive(), 1);
            bc.send(2);
          },
          [&] {
            EXPECT_EQ(bc.receive(), 2);
            ca.send(3);
          });
    }
  });
}

TEST_P(ParallelInvoke, LeavesTheWorkerToOthersWhileItWaits) {
  run([] {
    event go;
    auto other = spawn([&] { go.set(); });
    parallel_invoke([] {}, [&] { go.wait(); });
    other.join();
  });
}

// Many fibers fork on the same workers, and wait in between: their branches are mixed in the deques.
TEST_P(ParallelInvoke, FibersThatInterleave) {
  run([] {
    std::vector<join_handle<long>> all;
    for (int i = 0; i < 40; ++i)
      all.push_back(spawn([i] {
        long sum = 0;
        for (int round = 0; round < 40; ++round)
          parallel_invoke(
              [&] {
                long left = 0, right = 0;
                parallel_invoke(
                    [&] {
                      if (round % 3 == 0) this_fiber::yield();
                      left = i;
                    },
                    [&] {
                      right = 1;
                      if (round % 4 == 0) this_fiber::yield();
                    });
                sum += left + right;
              },
              [&] {
                if (round % 5 == 0) this_fiber::yield();
              });
        return sum;
      }));
    for (int i = 0; i < 40; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].get(), 40 * (i + 1));
  });
}

// More branches than a deque holds: the rest are plain calls.
long nest(int depth) {
  if (depth == 0) return 1;
  long a = 0, b = 0;
  parallel_invoke([&] { a = nest(depth - 1); }, [&] { b = 1; });
  return a + b;
}

TEST(ParallelInvokeDeep, NestedDeeperThanTheDeque) {
  for (const std::size_t workers : {1, 4}) {
    runtime rt({.threads = workers, .stack_size = 4 << 20});
    EXPECT_EQ(rt.run([] { return nest(3000); }), 3001);
  }
}

TEST_P(ParallelInvoke, ThrowsTheFirstByPosition) {
  run([] {
    for (int round = 0; round < 300; ++round) {
      try {
        parallel_invoke([] {},
                        [&] {
                          if (round % 2) this_fiber::yield();
                          throw std::runtime_error("second");
                        },
                        [] { throw std::runtime_error("third"); });
        ADD_FAILURE();
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), std::string("second"));
      }
    }
  });
}

TEST_P(ParallelInvoke, StopsWhatHasBegunWhenAnotherThrows) {
  run([] {
    bool stopped = false;
    event begun, never;
    EXPECT_THROW(parallel_invoke(
                     [&] {
                       begun.wait();
                       throw std::runtime_error("x");
                     },
                     [&] {
                       begun.set();
                       try {
                         never.wait();
                       } catch (const operation_cancelled&) {
                         stopped = true;
                         throw;
                       }
                     }),
                 std::runtime_error);
    EXPECT_TRUE(stopped);
  });
}

TEST_P(ParallelInvoke, DoesNotBeginTheOthersAfterAThrow) {
  if (GetParam() != 1) return;  // another worker may be faster
  run([] {
    bool called = false;
    EXPECT_THROW(parallel_invoke([] { throw 1; }, [&] { called = true; }), int);
    EXPECT_FALSE(called);
  });
}

TEST_P(ParallelInvoke, CancellationCrossesTheFork) {
  run([] {
    event inside, never;
    bool stopped = false;
    auto parent = spawn([&] {
      parallel_invoke([] {},
                      [&] {
                        inside.set();
                        try {
                          never.wait();
                        } catch (const operation_cancelled&) {
                          stopped = true;
                          throw;
                        }
                      });
    });
    inside.wait();
    parent.request_stop();
    EXPECT_THROW(parent.get(), operation_cancelled);
    EXPECT_TRUE(stopped);
  });
}

TEST_P(ParallelInvoke, TheDeadlineCrossesTheFork) {
  run([] {
    event never;
    channel<int> ready;
    const deadline_scope bound(20ms);
    EXPECT_THROW(parallel_invoke([&] { ready.receive(); },
                                 [&] {
                                   ready.send(1);
                                   never.wait();
                                 }),
                 deadline_exceeded);
  });
}

// The caller's shield and stack size must not depend on whether the branch was taken.
TEST_P(ParallelInvoke, TheShieldCrossesTheFork) {
  auto& home = make(GetParam());
  std::atomic<bool> finished{false}, shielded{false};
  home.spawn([&] {
        const shield uninterrupted;
        event inside;
        parallel_invoke([&] { inside.wait(); },
                        [&] {
                          inside.set();
                          shielded = true;
                          while (!this_fiber::stop_requested()) this_fiber::sleep_for(10us);
                          this_fiber::sleep_for(10us);
                          this_fiber::check();
                        });
        finished = true;
      })
      .detach();
  while (!shielded) std::this_thread::yield();
  EXPECT_EQ(end(home, shutdown_mode::cancel), 0u);
  EXPECT_TRUE(finished);
}

TEST_P(ParallelInvoke, TheSizeOfTheStackCrossesTheFork) {
  run([] {
    spawn({.stack_size = 1 << 20}, [] {
      event taken;
      const std::size_t own = this_fiber::stack().size;
      std::size_t others = 0;
      parallel_invoke([&] { taken.wait(); },
                      [&] {
                        others = this_fiber::stack().size;
                        taken.set();
                      });
      EXPECT_EQ(others, own);
    }).join();
  });
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

TEST_P(ParallelInvoke, WhatWasNotTakenStaysACall) {
  if (GetParam() != 1) return;  // others may take them all
  run([this] {
    const auto before = rt().metrics().fibers_spawned;
    const auto start = ulexite::steady_clock::now();
    EXPECT_EQ(wait_at_the_end_of(100), 100);
    // Between dispatches that take more than 50 us each the worker does its housekeeping, and takes the oldest then.
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

TEST_P(ParallelInvoke, AWorkerWithFibersTakesTheOldestBranchFirst) {
  if (GetParam() != 1) return;  // others may take any
  run([] {
    for (bool was_piled_up = false; !was_piled_up;) {  // the worker may look too early
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
TEST_P(ParallelInvoke, BranchesAreNotStarvedByFibers) {
  run([] {
    std::atomic<bool> called{false};
    wait_group all;
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
TEST_P(ParallelInvoke, OthersTakeTheBranchesOfAHog) {
  if (GetParam() == 1) return;  // there are no others
  run([] {
    for (int round = 0; round < 20; ++round) {
      std::atomic<bool> called{false};
      parallel_invoke([&] { EXPECT_TRUE(hog_until([&] { return called.load(); })); }, [&] { called = true; });
    }
  });
}

// It waits, and its worker is kept by another.
TEST_P(ParallelInvoke, OthersTakeTheBranchesThatLieBehindAHog) {
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
TEST_P(ParallelInvoke, BlocksInPlaceInABranch) {
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

TEST_P(ParallelInvoke, AStopTokenTellsABranchThatWasTaken) {
  run([] {
    std::atomic<int> told{0};
    event begun, never;
    auto parent = spawn([&] {
      parallel_invoke([] {},
                      [&] {
                        const std::stop_callback count(this_fiber::get_stop_token(), [&] {
                          parallel_invoke([&] { ++told; }, [&] { ++told; });  // in a stop callback: calls
                        });
                        begun.set();
                        wait_until([&] { return told == 2; });  // it may see the request before its token does
                        never.wait();
                      });
    });
    begun.wait();
    parent.request_stop();
    EXPECT_THROW(parent.get(), operation_cancelled);
    EXPECT_EQ(told, 2);
  });
}

// Branches are in the deques, and stolen ones are under way, when the runtime ends.
TEST_P(ParallelInvoke, TheRuntimeMayEndInTheMidstOfIt) {
  for (const auto mode : {shutdown_mode::drain, shutdown_mode::cancel, shutdown_mode::stop})
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
      if (mode != shutdown_mode::stop) EXPECT_EQ(left, 0u);
      if (mode == shutdown_mode::drain) EXPECT_EQ(returned, 4);
    }
}

// No fiber can be made for a taken branch: so the forking fiber calls it.
TEST(ParallelInvokeLimit, BranchesAreGivenBack) {
  for (const std::size_t workers : {1, 2, 4}) {
    runtime rt({.threads = workers, .max_fibers = 1});
    EXPECT_EQ(rt.run([] { return fib(20); }), 6765);
    rt.run([] {
      for (int round = 0; round < 100; ++round) {
        int called = 0;
        parallel_invoke([] { this_fiber::sleep_for(10us); }, [&] { ++called; });
        ASSERT_EQ(called, 1);
      }
    });
  }
}

TEST(ParallelInvokeOutside, OneAfterTheOther) {
  EXPECT_EQ(fib(10), 55);
  std::string order;
  parallel_invoke([&] { order += 'a'; }, [&] { order += 'b'; }, [&] { order += 'c'; });
  EXPECT_EQ(order, "abc");
}

}  // namespace
