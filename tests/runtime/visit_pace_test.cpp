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
      if (!pace_.count_dispatch()) {
        pace_.begin_visit(now_);
        static_cast<void>(pace_.count_dispatch());
      }
      now_ += work;
    }
    return pace_.eager();
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

}  // namespace
