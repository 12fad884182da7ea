#include <ulexite/fiber/fiber_state.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using ulexite::detail::fiber_phase;
using ulexite::detail::fiber_state;
using ulexite::detail::to_string;

TEST(FiberState, GoesThroughALife) {
  fiber_state state;
  EXPECT_EQ(state.phase(), fiber_phase::fresh);
  EXPECT_TRUE(state.start());
  EXPECT_EQ(state.phase(), fiber_phase::running);
  for (int i = 0; i < 3; ++i) {
    state.saved();
    EXPECT_EQ(state.phase(), fiber_phase::resumable);
    EXPECT_TRUE(state.resume());
    EXPECT_EQ(state.phase(), fiber_phase::running);
  }
  state.finish();
  EXPECT_EQ(state.phase(), fiber_phase::dead);
}

TEST(FiberState, RefusesWhatIsOutOfTurnAndStaysAsItIs) {
  fiber_state state;
  EXPECT_FALSE(state.resume());
  EXPECT_EQ(state.phase(), fiber_phase::fresh);
  EXPECT_TRUE(state.start());
  EXPECT_FALSE(state.start());
  EXPECT_FALSE(state.resume());
  EXPECT_EQ(state.phase(), fiber_phase::running);
  state.saved();
  EXPECT_FALSE(state.start());
  EXPECT_EQ(state.phase(), fiber_phase::resumable);
  EXPECT_TRUE(state.resume());
  state.finish();
  EXPECT_FALSE(state.start());
  EXPECT_FALSE(state.resume());
  EXPECT_EQ(state.phase(), fiber_phase::dead);
}

TEST(FiberState, HasANameForEachPhase) {
  EXPECT_STREQ(to_string(fiber_phase::fresh), "fresh");
  EXPECT_STREQ(to_string(fiber_phase::running), "running");
  EXPECT_STREQ(to_string(fiber_phase::resumable), "resumable");
  EXPECT_STREQ(to_string(fiber_phase::dead), "dead");
  EXPECT_STREQ(to_string(static_cast<fiber_phase>(77)), "corrupt");
}

}  // namespace
