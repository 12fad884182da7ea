#include <ulexite/runtime/worker/visit_pace.hpp>

#include <gtest/gtest.h>

namespace {

// A worker that dispatches `number` fibers of `work` ns each, after it was idle for `idle` ns before each.
class worker {
 public:
  worker() { pace_.begin_visit(now_); }
  bool becomes_eager(int number, std::int64_t work, std::int64_t idle) {
    for (int i = 0; i < number; ++i) {
      pace_.note_idle(idle);
      now_ += idle;
      visits_before(work);
    }
    return pace_.eager();
  }
  // Dispatches a fiber of `work` ns. Whether a visit came first.
  bool visits_before(std::int64_t work) {
    const bool visit = !pace_.count_dispatch();
    if (visit) {
      pace_.begin_visit(now_);
      static_cast<void>(pace_.count_dispatch());
    }
    now_ += work;
    return visit;
  }
  int dispatches_to_a_visit(std::int64_t work) {
    int count = 1;
    while (!visits_before(work)) ++count;
    return count;
  }

 private:
  ulexite::detail::visit_pace pace_;
  std::int64_t now_ = 1'000'000;
};

TEST(VisitPace, LongFibersMakeAWorkerEager) {
  EXPECT_TRUE(worker().becomes_eager(20, 60'000, 0));
  EXPECT_TRUE(worker().becomes_eager(20, 60'000, 1'000'000));
}

TEST(VisitPace, ShortFibersDoNot) { EXPECT_FALSE(worker().becomes_eager(1000, 5'000, 0)); }

TEST(VisitPace, NorDoesIdlenessBetweenShortFibers) {
  EXPECT_FALSE(worker().becomes_eager(1000, 5'000, 30'000));
  EXPECT_FALSE(worker().becomes_eager(1000, 5'000, 1'000'000'000));
}

// A server that has had little to do for long learns at once that its fibers now run long.
TEST(VisitPace, OneLongFiberAfterManyShortOnesIsEnough) {
  worker server;
  EXPECT_FALSE(server.becomes_eager(1000, 5'000, 1'000'000));
  EXPECT_TRUE(server.becomes_eager(2, 5'000'000, 1'000'000));  // the second one makes the visit
  EXPECT_FALSE(server.becomes_eager(10, 5'000, 1'000'000));
}

// The short one is the ticker's own run, for example, and it alone is between two visits.
TEST(VisitPace, AShortFiberAmongLongOnesDelaysNoVisit) {
  worker busy;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i) busy.visits_before(100'000);
    while (!busy.visits_before(2'000)) {
    }
    busy.visits_before(100'000);  // the visit here measures the short one
    EXPECT_LE(busy.dispatches_to_a_visit(100'000), 3);
  }
}

// Fibers that became short are soon visited as rarely as fits.
TEST(VisitPace, FollowsFibersThatBecomeShort) {
  worker busy;
  for (int i = 0; i < 100; ++i) busy.visits_before(100'000);
  int visits = 0;
  for (int i = 0; i < 1000; ++i) visits += busy.visits_before(100);
  EXPECT_LE(visits, 1000 / 61 + 7);
}

}  // namespace
