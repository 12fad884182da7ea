// Functions called together, here or on the worker that took them.

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/parallel_invoke.hpp>

#include "support/runtime_fixture.hpp"

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
