#include <ulexite/runtime/worker_parts/maintenance_pace.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace {

// A worker that dispatches `number` fibers of `work` ns each, after it was idle for `idle` ns before each.
class worker {
 public:
  worker() { pace_.begin_maintenance(now_); }
  bool becomes_eager(int number, std::int64_t work, std::int64_t idle) {
    for (int i = 0; i < number; ++i) {
      pace_.add_idle_time(idle);
      now_ += idle;
      maintains_before(work);
    }
    return pace_.eager();
  }
  // Dispatches a fiber of `work` ns. Whether maintenance came first.
  bool maintains_before(std::int64_t work) {
    const bool maintenance = std::exchange(due_, false);
    if (maintenance) pace_.begin_maintenance(now_);
    due_ = pace_.is_last_dispatch();
    now_ += work;
    return maintenance;
  }
  int dispatches_to_maintenance(std::int64_t work) {
    int count = 1;
    while (!maintains_before(work)) ++count;
    return count;
  }

 private:
  ulexite::detail::maintenance_pace pace_;
  bool due_ = false;
  std::int64_t now_ = 1'000'000;
};

TEST(MaintenancePace, LongFibersMakeAWorkerEager) {
  EXPECT_TRUE(worker().becomes_eager(20, 60'000, 0));
  EXPECT_TRUE(worker().becomes_eager(20, 60'000, 1'000'000));
}

TEST(MaintenancePace, ShortFibersDoNot) { EXPECT_FALSE(worker().becomes_eager(1000, 5'000, 0)); }

TEST(MaintenancePace, NorDoesIdlenessBetweenShortFibers) {
  EXPECT_FALSE(worker().becomes_eager(1000, 5'000, 30'000));
  EXPECT_FALSE(worker().becomes_eager(1000, 5'000, 1'000'000'000));
}

// A server that has had little to do for long learns at once that its fibers now run long.
TEST(MaintenancePace, OneLongFiberAfterManyShortOnesIsEnough) {
  worker server;
  EXPECT_FALSE(server.becomes_eager(1000, 5'000, 1'000'000));
  EXPECT_TRUE(server.becomes_eager(2, 5'000'000, 1'000'000));  // the second one does the maintenance
  EXPECT_FALSE(server.becomes_eager(10, 5'000, 1'000'000));
}

// The short one is the ticker's own run, for example, and it alone is between two rounds of maintenance.
TEST(MaintenancePace, AShortFiberAmongLongOnesDelaysNoMaintenance) {
  worker busy;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i) busy.maintains_before(100'000);
    while (!busy.maintains_before(2'000)) {
    }
    busy.maintains_before(100'000);  // the maintenance here measures the short one
    EXPECT_LE(busy.dispatches_to_maintenance(100'000), 3);
  }
}

// Fibers that became short are soon maintained as rarely as fits.
TEST(MaintenancePace, FollowsFibersThatBecomeShort) {
  worker busy;
  for (int i = 0; i < 100; ++i) busy.maintains_before(100'000);
  int times = 0;
  for (int i = 0; i < 1000; ++i) times += busy.maintains_before(100);
  EXPECT_LE(times, 1000 / 61 + 7);
}

}  // namespace
