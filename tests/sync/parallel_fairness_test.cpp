// Parallel computations occupy every worker, and still let the other fibers run.

#include <ulexite/runtime/concurrent_context.hpp>
#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/parallel_for.hpp>
#include <ulexite/sync/parallel_invoke.hpp>
#include <ulexite/sync/parallel_reduce.hpp>

#include "support/runtime_fixture.hpp"

#include <atomic>
#include <climits>
#include <functional>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ParallelFairness : public WorkersTest {};
ULEXITE_TEST_WORKERS(ParallelFairness);

void work_a_little() {
  hog_until([] { return false; }, 10us);
}

// Each loop would go on for hours on all workers.
TEST_P(ParallelFairness, WhoeverWaitsForTheTimeCanEndALoop) {
  run([] {
    auto loop = spawn([] { parallel_for(0, INT_MAX, [](int) { work_a_little(); }); });
    this_fiber::sleep_for(20ms);
    loop.request_stop();
    EXPECT_THROW(loop.get(), operation_cancelled);
  });
}

// Where no other worker may take a part of it.
TEST_P(ParallelFairness, ALoopInAContextOrUnderAGuardCanBeEnded) {
  run([] {
    std::atomic<int> begun{0};
    const auto endless = [&] {
      ++begun;
      parallel_for(0, INT_MAX, [](int) { work_a_little(); });
    };
    concurrent_context context;
    auto inside = context.spawn(endless);
    auto pinned = spawn([&] {
      const no_migration_scope guard;
      endless();
    });
    wait_until([&] { return begun == 2; });
    inside.request_stop();
    pinned.request_stop();
    EXPECT_THROW(inside.get(), operation_cancelled);
    EXPECT_THROW(pinned.get(), operation_cancelled);
  });
}

TEST_P(ParallelFairness, WhoeverWaitsForAFiberCanEndALoop) {
  run([] {
    auto loop = spawn([] {
      const auto map = [](int i) {
        work_a_little();
        return i % 2;
      };
      return parallel_reduce(0, INT_MAX, 0, map, std::plus{});
    });
    event begun;
    auto other = spawn([&] {
      begun.set();
      for (int i = 0; i < 3; ++i) this_fiber::yield();
    });
    begun.wait();
    other.join();
    loop.request_stop();
    EXPECT_THROW(loop.get(), operation_cancelled);
  });
}

TEST_P(ParallelFairness, ARecursionCanBeToldToEnd) {
  run([] {
    std::atomic<bool> enough{false};
    const auto grow = [&](auto& self, int depth) -> void {
      if (enough || depth == 0) return work_a_little();
      parallel_invoke([&] { self(self, depth - 1); }, [&] { self(self, depth - 1); });
    };
    auto tree = spawn([&] { grow(grow, 40); });
    this_fiber::sleep_for(20ms);
    enough = true;
    tree.get();
  });
}

// Those of other loops too: each has its turn.
TEST_P(ParallelFairness, LoopsTakeTurns) {
  run([] {
    std::atomic<int> begun{0};
    const auto until_all_have_begun = [&] {
      parallel_for(0, INT_MAX, [&, counted = std::atomic<bool>(false)](int) mutable {
        if (!counted.exchange(true)) ++begun;
        if (begun == 5) throw operation_cancelled();
        work_a_little();
      });
    };
    join_handle<void> loops[5];
    for (auto& loop : loops) loop = spawn(until_all_have_begun);
    for (auto& loop : loops) EXPECT_THROW(loop.get(), operation_cancelled);
  });
}

}  // namespace
