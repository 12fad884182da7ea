#include <ulexite/runtime/worker/visit_pace.hpp>

#include <gtest/gtest.h>

namespace {

// A worker makes visits, and between two of them dispatches fibers that take `work` ns each, with a sleep of `sleep`
// ns before each. Returns whether it is eager in the end.
bool becomes_eager(std::int64_t work, std::int64_t sleep) {
  ulexite::detail::visit_pace pace;
  std::int64_t now = 1'000'000;
  pace.begin_visit(now);
  for (int visit = 0; visit < 20; ++visit) {
    while (pace.count_dispatch()) {
      pace.note_idle(sleep);
      now += sleep + work;
    }
    pace.begin_visit(now);
  }
  return pace.eager();
}

TEST(VisitPace, LongFibersMakeAWorkerEager) {
  EXPECT_TRUE(becomes_eager(50'000, 0));
  EXPECT_TRUE(becomes_eager(50'000, 1'000'000));
}

TEST(VisitPace, ShortFibersDoNot) { EXPECT_FALSE(becomes_eager(5'000, 0)); }

TEST(VisitPace, NorDoesASleepBetweenShortFibers) {
  EXPECT_FALSE(becomes_eager(5'000, 30'000));
  EXPECT_FALSE(becomes_eager(5'000, 1'000'000'000));
}

}  // namespace
