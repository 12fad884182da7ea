// task_group::spawn_batch.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class SpawnBatch : public WorkersTest {};
ULEXITE_TEST_WORKERS(SpawnBatch);

TEST_P(SpawnBatch, StartsABatchWithItsNumbers) {
  run([] {
    task_group group;
    group.spawn_batch(0, [](std::size_t) { ADD_FAILURE(); });
    EXPECT_EQ(group.size(), 0u);
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
TEST_P(SpawnBatch, StartsALargeBatch) {
  static constexpr std::size_t fibers = ULEXITE_TSAN || ULEXITE_ASAN ? 5000 : 1'000'000;
  run([] {
    std::atomic<std::size_t> sum{0};
    task_group group;
    group.spawn_batch(fibers, [&](std::size_t i) { sum.fetch_add(i, std::memory_order_relaxed); });
    EXPECT_LE(group.size(), fibers);
    group.wait();
    EXPECT_EQ(sum, fibers * (fibers - 1) / 2);
  });
}

TEST_P(SpawnBatch, ABatchFromABatchIsWaitedForToo) {
  run([] {
    std::atomic<int> ended{0};
    task_group group;
    group.spawn_batch(40, [&](std::size_t) { group.spawn_batch(40, [&](std::size_t) { ++ended; }); });
    group.wait();
    EXPECT_EQ(ended, 1600);
  });
}

TEST_P(SpawnBatch, DestroysTheFunctionsOfABatchBeforeItCountsThem) {
  run([] {
    const auto shared = std::make_shared<int>(0);
    task_group group;
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

TEST_P(SpawnBatch, StartsNoneOfABatchWhenOneCannotBeMade) {
  run([] {
    third_copy_throws function;
    const auto calls = function.calls;
    task_group group;
    EXPECT_THROW(group.spawn_batch(5, std::move(function)), std::runtime_error);
    EXPECT_EQ(group.size(), 0u);
    group.wait();
    EXPECT_EQ(*calls, 0);
    EXPECT_EQ(calls.use_count(), 1);
  });
  runtime& limited = make({.threads = GetParam(), .max_fibers = 10});
  limited.run([] {
    std::atomic<int> calls{0};
    task_group group;
    try {
      group.spawn_batch(10, [&](std::size_t) { ++calls; });
      ADD_FAILURE();
    } catch (const std::system_error& refused) {
      EXPECT_EQ(refused.code(), make_error_code(errc::limit_reached));
    }
    EXPECT_EQ(group.size(), 0u);
    group.wait();
    EXPECT_EQ(calls, 0);
    group.spawn_batch(9, [&](std::size_t) { ++calls; });  // the made objects are destroyed
    group.wait();
    EXPECT_EQ(calls, 9);
  });
}

TEST_P(SpawnBatch, RefusesABatchOutsideAFiberOrAboveWhatItCounts) {
  task_group outside;
  try {
    outside.spawn_batch(3, [](std::size_t) {});
    ADD_FAILURE();
  } catch (const std::system_error& refused) {
    EXPECT_EQ(refused.code(), make_error_code(errc::no_runtime));
  }
  EXPECT_EQ(outside.size(), 0u);
  run([] {
    task_group group;
    EXPECT_THROW(group.spawn_batch(SIZE_MAX, [](std::size_t) {}), usage_error);
    EXPECT_EQ(group.size(), 0u);
  });
}

TEST_P(SpawnBatch, TheFibersOfABatchInheritADeadline) {
  run([] {
    std::atomic<int> over{0};
    task_group group;
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
