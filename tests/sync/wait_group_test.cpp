#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

// What it has in common with others is in gates_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

class WaitGroup : public WorkersTest {};
ULEXITE_TEST_WORKERS(WaitGroup);

TEST_P(WaitGroup, WaitsForAllItCounts) {
  run([] {
    wait_group group;
    group.wait();
    std::atomic<int> ended{0};
    for (int i = 0; i < 100; ++i)
      group.spawn([&] {
        this_fiber::yield();
        ++ended;
      });
    group.wait();
    EXPECT_EQ(ended, 100);
    group.wait();
    wait_group counted(3);
    counted.add(2);
    for (int i = 0; i < 5; ++i) {
      EXPECT_FALSE(counted.wait_for(0s));
      spawn([&] { counted.done(); }).detach();
    }
    counted.wait();
    counted.add(5);
    counted.add(-5);
    counted.wait();
  });
}

TEST_P(WaitGroup, BelowZeroIsAUsageErrorAndChangesNothing) {
  run([] {
    wait_group group(1);
    EXPECT_THROW(group.add(-2), usage_error);
    group.done();
    EXPECT_THROW(group.done(), usage_error);
    EXPECT_THROW(group.add(-1), usage_error);
    group.wait();
    EXPECT_TRUE(group.wait_for(0s));
  });
}

TEST_P(WaitGroup, CountsAFiberUntilItsFunctionIsDestroyed) {
  run([] {
    wait_group group;
    auto token = std::make_shared<int>(1);
    for (int i = 0; i < 10; ++i) group.spawn([token] { this_fiber::yield(); });
    group.wait();
    EXPECT_EQ(token.use_count(), 1);
  });
}

TEST_P(WaitGroup, ReportsTheExceptionsOfItsFibersAndCountsThem) {
  std::atomic<int> reports{0};
  runtime& rt = make({.threads = GetParam(), .on_unhandled_exception = [&](auto, auto) { ++reports; }});
  rt.run([] {
    wait_group group;
    for (int i = 0; i < 3; ++i) group.spawn([] { throw std::runtime_error("lost"); });
    group.wait();
  });
  wait_until([&] { return reports == 3; });
}

struct no_copy {
  no_copy() = default;
  no_copy(const no_copy&) { throw std::runtime_error("no copy"); }
  void operator()() const {}
};

TEST_P(WaitGroup, KeepsItsCountWhenASpawnFails) {
  runtime& rt = make({.threads = GetParam(), .max_fibers = 1});
  rt.run([] {
    wait_group group;
    EXPECT_THROW(group.spawn([] {}), std::system_error);
    group.wait();
  });
  run([] {
    wait_group group;
    const no_copy function;
    EXPECT_THROW(group.spawn(function), std::runtime_error);
    group.wait();
  });
  wait_group outside;
  EXPECT_THROW(outside.spawn([] {}), std::system_error);
  outside.wait();
}

TEST_P(WaitGroup, CanBeUsedAgain) {
  run([] {
    wait_group group;
    int sum = 0;  // not atomic: the waits order it
    for (int round = 0; round < times(1000); ++round) {
      group.spawn([&] { ++sum; });
      if (round % 3 == 0) group.wait_for(0s);
      group.wait();
      EXPECT_EQ(sum, round + 1);
    }
  });
}

// A cancelled wait unwinds past the group. Its fibers still use the group and the variables beside it.
TEST_P(WaitGroup, OutlivesItsFibersWhenItsWaitIsCancelled) {
  run([] {
    for (int i = 0; i < times(200); ++i) {
      event begun, cancelled, may_end;
      std::atomic<int> ended{0};
      auto waiter = spawn([&] {
        const auto used = std::make_unique<int>(0);
        wait_group group;
        for (int fiber = 0; fiber < 3; ++fiber)
          group.spawn([&] {
            begun.set();
            may_end.wait();
            ++ended;
            EXPECT_EQ(*used, 0);
          });
        EXPECT_THROW(group.wait(), operation_cancelled);
        cancelled.set();
      });
      begun.wait();
      waiter.request_stop();
      cancelled.wait();  // a wait that has not begun when the count falls to zero may return
      if (i % 2) this_fiber::yield();
      EXPECT_FALSE(waiter.done());
      may_end.set();
      waiter.get();
      EXPECT_EQ(ended, 3);
    }
  });
}

TEST_P(WaitGroup, RefusesCountsThatItCannotHold) {
  constexpr std::ptrdiff_t most = wait_group::most;
  EXPECT_THROW(wait_group(std::size_t{1} << 40), usage_error);
  EXPECT_THROW(wait_group(SIZE_MAX), usage_error);
  wait_group group;
  EXPECT_THROW(group.add(most + 1), usage_error);
  group.add(most);
  EXPECT_THROW(group.add(), usage_error);
  EXPECT_EQ(group.count(), static_cast<std::size_t>(most));
  group.add(-most);
  group.wait();
}

TEST_P(WaitGroup, StartsABatchWithItsNumbers) {
  run([] {
    wait_group group;
    group.spawn_batch(0, [](std::size_t) { ADD_FAILURE(); });
    EXPECT_EQ(group.count(), 0u);
    std::vector<std::atomic<int>> calls(5000);
    group.spawn_batch(calls.size(), [&](std::size_t i) {
      if (i % 3 == 0) this_fiber::yield();
      ++calls[i];
    });
    group.wait();
    for (const auto& each : calls) EXPECT_EQ(each, 1);
    group.spawn_batch(7, [&](std::size_t i) { ++calls[i]; });
    group.wait();
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(calls[i], i < 7 ? 2 : 1);
  });
}

// Fills the queue of the worker many times over.
TEST_P(WaitGroup, StartsALargeBatch) {
  static constexpr std::size_t fibers = ULEXITE_TSAN || ULEXITE_ASAN ? 5000 : 1'000'000;
  run([] {
    std::atomic<std::size_t> sum{0};
    wait_group group;
    group.spawn_batch(fibers, [&](std::size_t i) { sum.fetch_add(i, std::memory_order_relaxed); });
    EXPECT_LE(group.count(), fibers);
    group.wait();
    EXPECT_EQ(sum, fibers * (fibers - 1) / 2);
  });
}

TEST_P(WaitGroup, ABatchFromABatchIsWaitedForToo) {
  run([] {
    std::atomic<int> ended{0};
    wait_group group;
    group.spawn_batch(40, [&](std::size_t) { group.spawn_batch(40, [&](std::size_t) { ++ended; }); });
    group.wait();
    EXPECT_EQ(ended, 1600);
  });
}

TEST_P(WaitGroup, DestroysTheFunctionsOfABatchBeforeItCountsThem) {
  run([] {
    const auto shared = std::make_shared<int>(0);
    wait_group group;
    group.spawn_batch(100, [shared](std::size_t) {});
    group.wait();
    EXPECT_EQ(shared.use_count(), 1);
  });
}

// The third copy throws.
struct third_copy_throws {
  std::shared_ptr<int> copies = std::make_shared<int>(0);
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);

  third_copy_throws() = default;
  third_copy_throws(third_copy_throws&&) = default;
  third_copy_throws(const third_copy_throws& other) : copies(other.copies), calls(other.calls) {
    if (++*copies == 3) throw std::runtime_error("no third copy");
  }
  void operator()(std::size_t) const { ++*calls; }
};

TEST_P(WaitGroup, StartsNoneOfABatchWhenOneCannotBeMade) {
  run([] {
    third_copy_throws function;
    const auto calls = function.calls;
    wait_group group(1);
    EXPECT_THROW(group.spawn_batch(5, std::move(function)), std::runtime_error);
    EXPECT_EQ(group.count(), 1u);
    group.done();
    group.wait();
    EXPECT_EQ(*calls, 0);
    EXPECT_EQ(calls.use_count(), 1);
  });
  runtime& limited = make({.threads = GetParam(), .max_fibers = 10});
  limited.run([] {
    std::atomic<int> calls{0};
    wait_group group;
    try {
      group.spawn_batch(10, [&](std::size_t) { ++calls; });
      ADD_FAILURE();
    } catch (const std::system_error& refused) {
      EXPECT_EQ(refused.code(), make_error_code(errc::limit_reached));
    }
    EXPECT_EQ(group.count(), 0u);
    group.wait();
    EXPECT_EQ(calls, 0);
    group.spawn_batch(9, [&](std::size_t) { ++calls; });  // the made objects are destroyed
    group.wait();
    EXPECT_EQ(calls, 9);
  });
}

TEST_P(WaitGroup, RefusesABatchOutsideAFiberOrAboveWhatItCounts) {
  wait_group outside;
  try {
    outside.spawn_batch(3, [](std::size_t) {});
    ADD_FAILURE();
  } catch (const std::system_error& refused) {
    EXPECT_EQ(refused.code(), make_error_code(errc::no_runtime));
  }
  EXPECT_EQ(outside.count(), 0u);
  run([] {
    wait_group group(1);
    EXPECT_THROW(group.spawn_batch(SIZE_MAX, [](std::size_t) {}), usage_error);
    EXPECT_THROW(group.spawn_batch(wait_group::most, [](std::size_t) {}), usage_error);
    EXPECT_EQ(group.count(), 1u);
    group.done();
  });
}

TEST_P(WaitGroup, TheFibersOfABatchInheritADeadline) {
  run([] {
    std::atomic<int> over{0};
    wait_group group;
    timeout(0s, [&] {
      group.spawn_batch(10, [&](std::size_t) {
        try {
          this_fiber::sleep_for(1h);
        } catch (const deadline_exceeded&) {
          ++over;
        }
      });
    });
    group.wait();
    EXPECT_EQ(over, 10);
  });
}

}  // namespace
