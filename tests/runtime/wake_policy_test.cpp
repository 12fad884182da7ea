// When a theft pays, and when a worker wakes another. No threads: the times are the test's.

#include <ulexite/runtime/worker_parts/victims.hpp>
#include <ulexite/runtime/worker_parts/wake_policy.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace {

using namespace ulexite::detail;

constexpr std::int64_t start = 1'000'000'000, us = 1'000;

// A worker as a thief sees it.
struct victim {
  std::uint32_t dispatches = 0, spawned = 0;
  std::size_t queued = 0;
  std::int64_t now = start;
  victims seen{1, 2};

  victims::worth look() { return seen.look(1, {dispatches, spawned}, queued, now); }
  bool stood_still() { return seen.stood_still(1, {dispatches, spawned}, now); }
  bool pays() { return look() == victims::worth::all; }
  bool may_look(std::int64_t least = 0) const { return seen.may_look(1, now, least); }
  // The first look says nothing; it is this long ago then.
  explicit victim(std::int64_t ago) {
    seen.out_of_work(now);
    EXPECT_FALSE(pays());
    EXPECT_TRUE(may_look());
    now += ago;
  }
};

TEST(Victims, OneThatDoesLittleIsWorthATheft) {
  victim slow(10 * us);
  slow.dispatches = 10;
  EXPECT_TRUE(slow.pays());
  EXPECT_TRUE(slow.may_look());
}

TEST(Victims, OneThatServesItsQueueFastIsLeftAloneForLongerEachTime) {
  victim fast(10 * us);
  fast.dispatches = 11;
  EXPECT_FALSE(fast.pays());
  for (std::int64_t pause = 20 * us; pause < tuning::longest_look_away; pause *= 2) {
    fast.now += pause - 1;
    EXPECT_FALSE(fast.may_look());
    fast.now += 1;
    EXPECT_TRUE(fast.may_look());
    fast.dispatches += 1000;
    EXPECT_FALSE(fast.pays());
  }
  fast.now += tuning::longest_look_away;
  EXPECT_TRUE(fast.may_look());
  EXPECT_TRUE(fast.pays()) << "it has done nothing since";
}

// But what was woken, and its jobs, do not wait for its end.
TEST(Victims, OneThatSpawnsManyKeepsItsRing) {
  victim spawner(10 * us);
  spawner.spawned = 11;
  spawner.queued = 11;
  EXPECT_EQ(spawner.look(), victims::worth::woken);
}

// Its fibers may come back.
TEST(Victims, ATheftFromAFastOneIsTriedLaterEachTimeUnlessItPays) {
  victim fast(10 * us);
  fast.queued = 1;
  const auto pays = [&fast] {
    fast.dispatches += 100'000;
    return fast.pays();
  };
  EXPECT_TRUE(pays());
  for (std::int64_t pause = tuning::shortest_pause; pause <= tuning::longest_pause; pause *= 2) {
    fast.now += us;
    fast.seen.out_of_work(fast.now);  // it is out of work so soon
    EXPECT_FALSE(pays());
    std::int64_t left = pause;
    for (; left > tuning::longest_look_away; left -= tuning::longest_look_away) {
      fast.now += tuning::longest_look_away;
      EXPECT_FALSE(pays());
    }
    fast.now += left;
    EXPECT_TRUE(pays());
  }
  for (int i = 0; i < 3; ++i) {
    fast.now += tuning::worth_a_try;
    fast.seen.out_of_work(fast.now);
    EXPECT_TRUE(pays());
  }
}

TEST(Victims, NothingIsTriedWhereNothingIsQueued) {
  victim fast(10 * us);
  fast.dispatches = 1000;
  EXPECT_FALSE(fast.pays());
}

TEST(Victims, WhatWasSeenLongBeforeTheSearchSaysNothing) {
  victim old(2 * tuning::longest_look_away + 1);
  old.seen.out_of_work(old.now);
  EXPECT_FALSE(old.pays());
  EXPECT_TRUE(old.may_look()) << "in the next round";
  old.now += us;
  EXPECT_TRUE(old.pays());
}

// With more workers than processors it may lose its own between two looks.
TEST(Victims, WhatWasSeenInTheSameSearchCounts) {
  victim slow(3'000 * us);
  slow.dispatches = 10;
  EXPECT_TRUE(slow.pays());
}

TEST(Victims, OneThatDispatchedOrSpawnedHasNotStoodStill) {
  victim other(100 * us);
  EXPECT_TRUE(other.stood_still());
  other.dispatches = 1;
  EXPECT_FALSE(other.stood_still());
  other.spawned = 1;
  EXPECT_FALSE(other.stood_still());
  EXPECT_TRUE(other.stood_still());
}

TEST(Victims, LooksMayBeApart) {
  victim crowded(10 * us);
  EXPECT_FALSE(crowded.may_look(10 * us + 1));
  EXPECT_TRUE(crowded.may_look(10 * us));
}

TEST(WakePolicy, PausesAreLongerEachTimeThatNothingWasTaken) {
  wake_pause pause;
  EXPECT_TRUE(pause.over(start));
  std::int64_t now = start;
  for (std::int64_t length = tuning::shortest_pause; length <= tuning::longest_pause; length *= 2) {
    pause.on_wake(now, 0);
    EXPECT_FALSE(pause.over(now + length - 1));
    now += length;
    EXPECT_TRUE(pause.over(now));
  }
  pause.on_wake(now, 0);
  EXPECT_TRUE(pause.over(now + tuning::longest_pause));
  pause.on_wake(now, 1);  // taken
  EXPECT_TRUE(pause.over(now));
}

TEST(WakePolicy, PushesAreKeptDuringAPauseAndAnnouncedAfterIt) {
  wake_policy wakes;
  EXPECT_FALSE(wakes.suppresses_push());
  const std::int64_t now = now_ns() + 3600 * std::int64_t{1'000'000'000};  // so that it is not over meanwhile
  wakes.pushes.on_wake(now, 0);
  EXPECT_FALSE(wakes.announce_due(now + tuning::shortest_pause, false)) << "none was kept";
  EXPECT_TRUE(wakes.suppresses_push());
  EXPECT_TRUE(wakes.any_suppressed());
  EXPECT_FALSE(wakes.announce_due(now + tuning::shortest_pause - 1, false));
  EXPECT_TRUE(wakes.announce_due(now + tuning::shortest_pause, false));
  EXPECT_FALSE(wakes.any_suppressed());
}

TEST(WakePolicy, AWorkerWithLongFibersKeepsNone) {
  wake_policy wakes;
  const std::int64_t now = now_ns() + 3600 * std::int64_t{1'000'000'000};  // so that it is not over meanwhile
  wakes.pushes.on_wake(now, 0);
  EXPECT_TRUE(wakes.suppresses_push());
  EXPECT_TRUE(wakes.announce_due(now, true));
  EXPECT_FALSE(wakes.suppresses_push());
}

TEST(WakePolicy, AFiberThatPushesWithoutASwitchSeesTheEnd) {
  wake_policy wakes;
  wakes.pushes.on_wake(now_ns() - tuning::shortest_pause, 0);  // over, but the worker has read no clock since
  EXPECT_FALSE(wakes.suppresses_push()) << "the first pushes read it";
  wakes.pushes.on_wake(now_ns() + 3600 * std::int64_t{1'000'000'000}, 0);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(wakes.suppresses_push());
  wakes.pushes.on_wake(now_ns() - tuning::longest_pause, 0);
  int suppressed = 0;
  while (wakes.suppresses_push()) ASSERT_LT(++suppressed, 100);
  EXPECT_GT(suppressed, 0) << "later it reads it now and then";
}

}  // namespace
