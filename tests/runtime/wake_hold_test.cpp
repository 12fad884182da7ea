// Thefts that do not pay, and the pushes that their victim then keeps to itself. No threads: the times are the test's.

#include <ulexite/runtime/worker/theft_policy.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace {

using namespace ulexite::detail;

constexpr std::int64_t start = 1'000'000'000;

// One theft of a fiber that ends after `ran` ns. Returns when it was judged.
std::int64_t steal_one(theft_policy& thief, wake_hold& victim, std::int64_t ran, std::int64_t at = start) {
  thief.note(1, at, &victim);
  thief.judge(at + ran);
  return at + ran;
}

TEST(WakeHold, PushesAreAnnouncedAfterATheftThatPaid) {
  theft_policy thief(1);
  wake_hold victim;
  steal_one(thief, victim, tuning::wake_cost);
  EXPECT_FALSE(victim.announce_due(start, false));
  EXPECT_FALSE(victim.keeps_push());
  EXPECT_EQ(thief.search_time(), tuning::search_time);
}

TEST(WakeHold, PushesAreKeptAfterATheftThatDidNot) {
  theft_policy thief(1);
  wake_hold victim;
  EXPECT_FALSE(victim.announce_due(start, false));
  const std::int64_t over = steal_one(thief, victim, tuning::wake_cost - 1) + tuning::shortest_pause;
  EXPECT_LT(thief.search_time(), tuning::search_time);
  EXPECT_FALSE(thief.may_steal(start, over - 1));
  EXPECT_TRUE(thief.may_steal(start, over));
  EXPECT_TRUE(victim.keeps_push());
  EXPECT_FALSE(victim.announce_due(over - 1, false));
  EXPECT_TRUE(victim.keeps_push());
  EXPECT_TRUE(victim.announce_due(over, false));
  EXPECT_FALSE(victim.announce_due(over, false)) << "announced twice";
  EXPECT_FALSE(victim.keeps_push());
}

TEST(WakeHold, WhatTheSharedQueueBroughtKeepsNoPushes) {
  theft_policy thief(1);
  thief.note(1, start, nullptr);
  thief.judge(start + 1);
  EXPECT_TRUE(thief.may_steal(start, start + 1));
  EXPECT_EQ(thief.search_time(), tuning::search_time);
}

TEST(WakeHold, IsLongerEachTimeAndEndsWithATheftThatPaid) {
  theft_policy thief(1);
  wake_hold victim;
  std::int64_t judged = start;
  for (std::int64_t hold = tuning::shortest_pause; hold < tuning::longest_hold; hold *= 2) {
    judged = steal_one(thief, victim, 1, judged);
    EXPECT_FALSE(victim.announce_due(judged + hold - 1, false));
    EXPECT_TRUE(victim.keeps_push());
    EXPECT_TRUE(victim.announce_due(judged + hold, false));
  }
  judged = steal_one(thief, victim, tuning::wake_cost, judged + tuning::longest_hold);
  EXPECT_EQ(thief.search_time(), tuning::search_time);
  judged = steal_one(thief, victim, 1, judged);
  EXPECT_FALSE(victim.announce_due(judged, false));
  EXPECT_TRUE(victim.keeps_push());
  EXPECT_TRUE(victim.announce_due(judged + tuning::shortest_pause, false));
}

// A thief that took a batch of fibers that ended soon.
theft_policy patient_thief() {
  theft_policy thief(1);
  thief.note(tuning::smallest_batch, start, nullptr);
  thief.judge(start + 1);
  EXPECT_FALSE(thief.may_steal(start, start + tuning::shortest_patience - 1));
  return thief;
}

TEST(TheftPolicy, PatienceEndsWithAnyTheftThatPaid) {
  for (const auto& [count, enough] : {std::pair{std::size_t{1}, tuning::wake_cost},
                                      std::pair{tuning::smallest_batch, std::int64_t{8} * tuning::transfer_cost}}) {
    theft_policy thief = patient_thief();
    thief.note(1, start, nullptr);
    thief.judge(start + tuning::wake_cost - 1);
    EXPECT_FALSE(thief.may_steal(start, start));
    EXPECT_TRUE(thief.may_steal(start, start + tuning::shortest_patience)) << "a single fiber made it more patient";
    thief.note(count, start, nullptr);
    thief.judge(start + enough);
    EXPECT_TRUE(thief.may_steal(start, start));
    EXPECT_EQ(thief.search_time(), tuning::search_time);
  }
}

TEST(TheftPolicy, PatienceEndsWithALongSleep) {
  theft_policy thief = patient_thief();
  thief.note_sleep(tuning::longest_patience - 1);
  EXPECT_FALSE(thief.may_steal(start, start));
  thief.note_sleep(tuning::longest_patience);
  EXPECT_TRUE(thief.may_steal(start, start));
}

TEST(WakeHold, AWorkerWithLongFibersAnnouncesAtItsVisit) {
  theft_policy thief(1);
  wake_hold victim;
  const std::int64_t judged = steal_one(thief, victim, 1);
  EXPECT_TRUE(victim.keeps_push());
  EXPECT_TRUE(victim.announce_due(judged, true));
  EXPECT_FALSE(victim.keeps_push());
}

TEST(WakeHold, AFiberThatPushesWithoutASwitchSeesTheEnd) {
  wake_hold victim;
  victim.hold_until(now_ns());  // over, but the worker has read no clock since
  int kept = 0;
  while (victim.keeps_push()) ASSERT_LT(++kept, 100);
  EXPECT_GT(kept, 0);
}

}  // namespace
