// Fibers of a concurrent_context never run at the same time, whatever they wait for.

#include "support/waiting.hpp"

#include <ulexite/runtime/concurrent_context.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/parallel_context.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/parallel_for.hpp>
#include <ulexite/sync/task_group.hpp>

#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ConcurrentContext : public WorkersTest {};
ULEXITE_TEST_WORKERS(ConcurrentContext);

// Says when two are in at the same time. The code between enter and leave must not wait.
class alone {
 public:
  template <class F>
  void in(F&& function) {
    EXPECT_EQ(inside_.fetch_add(1), 0) << "two fibers of a context run at the same time";
    function();
    inside_.fetch_sub(1);
  }

 private:
  std::atomic<int> inside_{0};
};

TEST_P(ConcurrentContext, NeverRunsTwoAtATime) {
  constexpr int fibers = 20, rounds = 200;
  int unguarded = 0;
  alone guard;
  run([&] {
    concurrent_context context("counting");
    std::vector<join_handle<>> all;
    channel<int> tokens(3);
    for (int i = 0; i < fibers; ++i)
      all.push_back(context.spawn([&, i] {
        for (int round = 0; round < rounds; ++round) {
          guard.in([&] { ++unguarded; });
          switch ((i + round) % 4) {
            case 0: this_fiber::yield(); break;
            case 1: this_fiber::sleep_for(1us); break;
            case 2: tokens.send(i); break;
            default: {
              int token = 0;
              static_cast<void>(tokens.try_receive(token));
            }
          }
        }
      }));
    auto drain = spawn([&] {
      while (tokens.receive()) {
      }
    });
    for (auto& each : all) each.get();
    tokens.close();
    drain.get();
  });
  EXPECT_EQ(unguarded, fibers * rounds);
}

TEST_P(ConcurrentContext, TheNextRunsWhileOneWaits) {
  run([&] {
    concurrent_context context;
    event first, second;
    auto waiter = context.spawn([&] {
      first.set();
      second.wait();
      return 7;
    });
    context
        .spawn([&] {
          first.wait();
          second.set();
        })
        .get();
    EXPECT_EQ(waiter.get(), 7);
  });
}

TEST_P(ConcurrentContext, TwoContextsRunBesideEachOther) {
  if (GetParam() == 1) GTEST_SKIP() << "needs two workers";
  run([&] {
    concurrent_context left("left"), right("right");
    std::atomic<int> here{0};
    const auto meet = [&] {
      ++here;
      test::wait_until([&] { return here == 2; });  // without leaving the worker
    };
    auto a = left.spawn(meet), b = right.spawn(meet);
    a.get();
    b.get();
  });
}

// The spawns of a member are members: plain, in a group, many together, and from its own job.
TEST_P(ConcurrentContext, WhatIsSpawnedInsideStaysInside) {
  alone guard;
  std::atomic<int> ran{0};
  run([&] {
    concurrent_context context;
    const auto inside = [&] {
      for (int i = 0; i < 50; ++i) {
        guard.in([&] { ++ran; });
        this_fiber::yield();
      }
    };
    context
        .spawn([&] {
          std::vector<join_handle<>> all;
          for (int i = 0; i < 5; ++i) all.push_back(spawn(inside));
          task_group group;
          for (int i = 0; i < 5; ++i) group.spawn(inside);
          task_group counted;
          counted.spawn_batch(5, [&](std::size_t) { inside(); });
          inside();
          for (auto& each : all) each.get();
          group.wait();
          counted.wait();
        })
        .get();
    context.wait();
  });
  EXPECT_EQ(ran, 16 * 50);
}

TEST_P(ConcurrentContext, ParallelLoopsStayOnIt) {
  alone guard;
  run([&] {
    concurrent_context context;
    auto first = context.spawn([&] {
      std::size_t sum = 0;
      parallel_for(std::size_t{0}, std::size_t{10'000}, [&](std::size_t i) { guard.in([&] { sum += i; }); });
      return sum;
    });
    auto second = context.spawn([&] {
      for (int i = 0; i < 1000; ++i) {
        guard.in([] {});
        this_fiber::yield();
      }
    });
    EXPECT_EQ(first.get(), 49'995'000U);
    second.get();
  });
}

TEST_P(ConcurrentContext, ThousandsAreCheap) {
  std::atomic<int> ran{0};
  run([&] {
    std::vector<std::unique_ptr<concurrent_context>> contexts;
    std::vector<join_handle<>> all;
    for (int i = 0; i < 5000; ++i) {
      contexts.push_back(std::make_unique<concurrent_context>());
      all.push_back(contexts.back()->spawn([&] { ++ran; }));
    }
    for (auto& each : all) each.get();
  });
  EXPECT_EQ(ran, 5000);
}

TEST_P(ConcurrentContext, ResultsAndExceptionsComeBack) {
  run([&] {
    concurrent_context context;
    EXPECT_EQ(context.spawn([](int a, int b) { return a + b; }, 3, 4).get(), 7);
    EXPECT_THROW(context.spawn([] { throw std::runtime_error("no"); }).get(), std::runtime_error);
    EXPECT_EQ(context.spawn({.name = "named"}, [] { return std::string(this_fiber::name()); }).get(), "named");
    EXPECT_EQ(run_in(context, [](std::string s) { return s + "!"; }, "a"), "a!");
  });
}

TEST_P(ConcurrentContext, FromOutside) {
  concurrent_context context(rt(), "outside");
  EXPECT_EQ(context.name(), "outside");
  int sum = 0;
  std::vector<join_handle<>> all;
  for (int i = 1; i <= 100; ++i) all.push_back(context.spawn([&sum, i] { sum += i; }));
  for (auto& each : all) each.get();
  EXPECT_EQ(sum, 5050);
}

TEST_P(ConcurrentContext, ItsEndStopsAndWaits) {
  std::atomic<int> stopped{0}, told{0};
  run([&] {
    event never;
    {
      concurrent_context context;
      for (int i = 0; i < 10; ++i)
        context
            .spawn([&] {
              try {
                never.wait();
              } catch (const operation_cancelled&) {
                this_fiber::yield();
                ++stopped;
                throw;
              }
            })
            .detach();
      context
          .spawn([&](std::stop_token token) {
            const std::stop_callback on_stop(token, [&] { ++told; });
            try {
              never.wait();
            } catch (const operation_cancelled&) {
              ++stopped;
            }
          })
          .detach();
      wait_until_others_wait();
    }
    EXPECT_EQ(stopped, 11);
    EXPECT_EQ(told, 1);
  });
}

TEST_P(ConcurrentContext, AStopReachesWhatIsSpawnedLater) {
  run([&] {
    concurrent_context context;
    context.request_stop();
    EXPECT_TRUE(context.spawn([] { return this_fiber::stop_requested(); }).get());
    EXPECT_FALSE(spawn([] { return this_fiber::stop_requested(); }).get()) << "others do not hear of it";
  });
}

TEST_P(ConcurrentContext, MigrateTo) {
  alone left_guard, right_guard;
  run([&] {
    concurrent_context left, right;
    const auto wander = [&] {
      for (int i = 0; i < 50; ++i) {
        this_fiber::migrate_to(left);
        left_guard.in([] {});
        this_fiber::yield();
        left_guard.in([] {});
        this_fiber::migrate_to(right);
        right_guard.in([] {});
        this_fiber::migrate_to(current_runtime());
        this_fiber::yield();
      }
    };
    std::vector<join_handle<>> all;
    for (int i = 0; i < 4; ++i) all.push_back(spawn(wander));
    all.push_back(left.spawn(wander));
    all.push_back(right.spawn(wander));
    for (auto& each : all) each.get();
  });
}

TEST_P(ConcurrentContext, ATokenHearsOfWhereItsFiberIs) {
  run([&] {
    concurrent_context left, right;
    event stopped_left, moved;
    auto wanderer = left.spawn([&](std::stop_token token) {
      this_fiber::migrate_to(right);
      moved.set();
      stopped_left.wait();
      EXPECT_FALSE(token.stop_requested()) << "it has left";
      right.request_stop();
      EXPECT_TRUE(token.stop_requested());
    });
    moved.wait();
    left.request_stop();
    stopped_left.set();
    wanderer.get();
  });
}

// A callback of a token uses the same fiber, which ends at this time.
TEST_P(ConcurrentContext, StopsRaceWithEnds) {
  for (int round = 0; round < 50; ++round)
    run([&] {
      concurrent_context context;
      std::vector<join_handle<>> all(8);
      for (auto& each : all)
        each = context.spawn([&each](std::stop_token token) {
          const std::stop_callback asks(token, [&each] { static_cast<void>(each.done()); });
          this_fiber::yield();
        });
      auto stopper = spawn([&] { context.request_stop(); });
      stopper.get();
      context.wait();
    });
}

TEST_P(ConcurrentContext, MisuseIsTold) {
  runtime& other = make(1);
  run([&] {
    concurrent_context context, elsewhere(other);
    EXPECT_THROW(this_fiber::migrate_to(elsewhere), usage_error);
    EXPECT_THROW(context.spawn([&] { context.wait(); }).get(), usage_error);
    EXPECT_EQ(run_in(elsewhere, [] { return 5; }), 5);
    event over;
    context.spawn([&] { over.wait(); }).detach();
    auto waiter = spawn([&] { context.wait(); });
    wait_until_others_wait();
    EXPECT_THROW(context.wait(), usage_error) << "another waits";
    over.set();
    waiter.get();
  });
  concurrent_context outside(rt());
  EXPECT_THROW(this_fiber::migrate_to(outside), usage_error) << "on a plain thread";
  EXPECT_THROW(concurrent_context(), std::system_error);
}

TEST_P(ConcurrentContext, StartsNothingAfterTheShutdown) {
  for (const bool used : {true, false}) {
    runtime over({.threads = GetParam()});
    concurrent_context context(over);
    if (used) context.spawn([] {}).get();
    over.shutdown(shutdown_mode::drain);
    EXPECT_THROW(context.spawn([] {}), usage_error);
  }
}

TEST_P(ConcurrentContext, AParallelContextMayBeDrained) {
  std::atomic<int> ran = 0;
  run([&] {
    parallel_context pool("pool", 2);
    for (int i = 0; i < 10; ++i) pool.spawn([&] { ++ran; }).detach();
    block_in_place([&] { pool.runtime().shutdown(shutdown_mode::drain); });
  });
  EXPECT_EQ(ran, 10);
}

// The token that the holder of the handle asks for follows the context in which the fiber is.
TEST_P(ConcurrentContext, AFiberMovesWhileItsTokenIsAskedFor) {
  run([&] {
    for (int round = 0; round < 100; ++round) {
      std::optional<concurrent_context> first(std::in_place), second(std::in_place);
      std::atomic<bool> moved = false;
      event stays;
      auto mover = first->spawn([&] {
        this_fiber::migrate_to(*second);
        moved = true;
        stays.wait();
      });
      const std::stop_token token = mover.get_stop_token();
      while (!moved) this_fiber::yield();
      first.reset();
      EXPECT_FALSE(token.stop_requested());
      second->request_stop();
      EXPECT_TRUE(token.stop_requested());
      EXPECT_THROW(mover.get(), operation_cancelled);
    }
  });
}

TEST_P(ConcurrentContext, ParallelContextsAreApart) {
  run([&] {
    parallel_context pool("pool", 2);
    EXPECT_EQ(pool.name(), "pool");
    EXPECT_NE(pool.spawn([] { return &current_runtime(); }).get(), &current_runtime());
    EXPECT_EQ(run_in(pool, [](int i) { return spawn([i] { return i + 1; }).get(); }, 4), 5);
    pool.resize(1);
    EXPECT_THROW(pool.resize(0), std::invalid_argument);
    channel<int> between;
    pool.spawn([&] { between.send(3); }).detach();
    EXPECT_EQ(between.receive(), 3);
    pool.spawn([] { this_fiber::sleep_for(1h); }).detach();  // is cancelled at the end
  });
}

}  // namespace
