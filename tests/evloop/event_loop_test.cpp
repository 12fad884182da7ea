// Turning, waking and timers. Descriptors: fd_source_test.cpp.

#include "probes.hpp"

#include <ulexite/base/random.hpp>

#include <algorithm>
#include <memory>
#include <thread>

namespace ulexite::test {
namespace {

using events = std::vector<event*>;

TEST(EventLoop, PollOfNothingReturnsAtOnce) {
  event_loop loop(1);
  EXPECT_EQ(poll(loop), events{});
  EXPECT_EQ(loop.registrations(), 0u);
  EXPECT_EQ(loop.next_deadline(), INT64_MAX);
}

// ---- wake ----

TEST(EventLoop, WakeBeforeWaitIsNotLost) {
  event_loop loop(1);
  loop.wake();
  EXPECT_EQ(wait(loop), events{});
}

TEST(EventLoop, WakeOutlivesAPollThatConsumesItsEdge) {
  event_loop loop(1);
  loop.wake();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(poll(loop), events{});
  EXPECT_EQ(wait(loop), events{});
}

TEST(EventLoop, EachWaitNeedsAWakeOfItsOwn) {
  event_loop loop(1);
  loop.wake();
  loop.wake();
  wait(loop);
  loop.wake();
  wait(loop);
  // Nothing is left over: this one is ended by its timer only.
  timer_probe timer;
  timer.prepare();
  loop.arm(timer, now() + 20 * millisecond, 0);
  event_list ready;
  loop.wait(ready);
  EXPECT_EQ(contents(ready), events{&timer});
}

TEST(EventLoop, WakeEndsABlockedWait) {
  event_loop loop(1);
  std::atomic<pid_t> id{0};
  std::thread waiter([&] {
    id = thread_id();
    wait(loop);
  });
  ASSERT_TRUE(eventually([&] { return id.load() != 0; }));
  until_asleep(id);
  loop.wake();
  waiter.join();
}

TEST(EventLoop, WakesAndPollsAndWaitsRaceWithoutLoss) {
  // Each round must be answered by a wait that returns after its wake; polls in between eat edges.
  constexpr int rounds = 20'000;
  event_loop loop(1);
  std::atomic<int> asked{0}, answered{0};
  std::thread waiter([&] {
    detail::random random(3);
    while (answered < rounds) {
      const int before = answered;
      while (random.below(3) == 0) poll(loop);
      wait(loop);
      answered = asked.load();
      if (answered == before) std::this_thread::yield();
    }
  });
  detail::random random(4);
  for (int round = 1; round <= rounds; ++round) {
    asked = round;
    loop.wake();
    if (random.below(4) == 0) loop.wake();
    const bool seen = eventually([&] { return answered >= round; });
    ASSERT_TRUE(seen);
  }
  loop.wake();
  waiter.join();
}

// ---- timers ----

TEST(EventLoop, TimersFireInOrderAndNeverEarly) {
  event_loop loop(1);
  std::vector<timer_probe> timers(20);
  const std::int64_t start = now();
  for (std::size_t i = 0; i < timers.size(); ++i) {
    timers[i].prepare();
    loop.arm(timers[i], start + std::int64_t((i * 7) % timers.size()) * millisecond, 0);
  }
  EXPECT_EQ(loop.registrations(), timers.size());
  std::int64_t last = 0;
  for (std::size_t fired = 0; fired < timers.size();) {
    const events ready = wait_for_events(loop);
    const std::int64_t time = now();
    ASSERT_FALSE(ready.empty());
    for (event* each : ready) {
      const std::int64_t deadline = static_cast<timer_event*>(each)->deadline;
      EXPECT_LE(deadline, time) << "early";
      EXPECT_LE(last, deadline) << "out of order";
      last = deadline;
    }
    fired += ready.size();
  }
  EXPECT_EQ(loop.registrations(), 0u);
}

TEST(EventLoop, FireTimersLeavesTheFutureAlone) {
  event_loop loop(2);
  timer_probe due, later;
  due.prepare();
  later.prepare();
  loop.arm(due, now(), 1);
  loop.arm(later, now() + bound, 0);
  event_list ready;
  loop.fire_timers(ready);
  EXPECT_EQ(contents(ready), events{&due});
  EXPECT_EQ(loop.next_deadline(), later.deadline);
  EXPECT_TRUE(loop.cancel(later));
  EXPECT_EQ(loop.next_deadline(), INT64_MAX);
}

TEST(EventLoop, DeadlinesInThePastAndNeverAreFine) {
  event_loop loop(1);
  timer_probe past, never;
  past.prepare();
  never.prepare();
  loop.arm(past, INT64_MIN, 0);
  loop.arm(never, INT64_MAX, 0);
  EXPECT_EQ(wait(loop), events{&past});
  EXPECT_TRUE(loop.cancel(never));
}

TEST(EventLoop, WaitWithADueTimerStillCollectsDescriptors) {
  event_loop loop(1);
  const auto pair = channel_pair::pipe();
  fd_source& source = loop.open(pair.ends[0]);
  fd_probe reader;
  reader.prepare();
  ASSERT_TRUE(loop.arm(source, direction::read, reader));
  pair.send();
  timer_probe timer;
  timer.prepare();
  loop.arm(timer, now(), 0);
  EXPECT_EQ(wait(loop), (events{&timer, &reader}));
  close(loop, source);
}

TEST(EventLoop, CancelBeforeFiringTakesTheTimerBack) {
  event_loop loop(1);
  timer_probe timer;
  timer.prepare();
  loop.arm(timer, now(), 0);
  EXPECT_TRUE(loop.cancel(timer));
  EXPECT_EQ(poll(loop), events{});
  EXPECT_EQ(timer.now_is, timer_probe::armed);
}

TEST(EventLoop, CancelAfterFiringReturnsFalse) {
  event_loop loop(1);
  timer_probe timer;
  EXPECT_FALSE(loop.cancel(timer)) << "never armed";
  timer.prepare();
  loop.arm(timer, now(), 0);
  EXPECT_EQ(poll(loop), events{&timer});
  EXPECT_FALSE(loop.cancel(timer));
}

TEST(EventLoop, TimerThatLosesItsClaimYieldsNoEntry) {
  event_loop loop(1);
  timer_probe timer;  // not prepared: the claim fails
  loop.arm(timer, now() + millisecond, 0);
  const bool fired = eventually([&] {
    EXPECT_EQ(poll(loop), events{});  // a wait that begins when the timer has expired drops it first, and then blocks
    return loop.registrations() == 0;
  });
  EXPECT_TRUE(fired);
  EXPECT_FALSE(loop.cancel(timer));
}

TEST(EventLoop, FiredTimerCanBeArmedAgain) {
  event_loop loop(1);
  timer_probe timer;
  for (int i = 0; i < 3; ++i) {
    timer.prepare();
    loop.arm(timer, now() + 100'000, 0);
    EXPECT_EQ(wait_for_events(loop), events{&timer});
  }
}

TEST(EventLoop, AlarmLeftByACancelledTimerDoesNotHideALaterOne) {
  // The timerfd stays set to the cancelled deadline, expires, and must be set again for the next.
  event_loop loop(1);
  for (int i = 0; i < 20; ++i) {
    timer_probe first, second;
    first.prepare();
    second.prepare();
    loop.arm(first, now() + millisecond, 0);
    loop.wake();
    wait(loop);
    if (!loop.cancel(first)) continue;
    loop.arm(second, now() + 3 * millisecond, 0);
    EXPECT_EQ(wait_for_events(loop), events{&second});
  }
}

TEST(EventLoop, EarlierTimerOfAnotherThreadShortensABlockedWait) {
  event_loop loop(2);
  timer_probe late;
  late.prepare();
  loop.arm(late, now() + 200 * bound, 0);  // each of the rounds below has a bound of its own
  {
    turner other(loop);
    other.timers = true;
    for (int i = 0; i < 100; ++i) {
      timer_probe early;
      early.prepare();
      if (i % 2 == 0) until_asleep(other.id());
      loop.arm(early, now() + (i % 5) * 100'000, 1);
      const bool delivered = eventually([&] { return early.now_is == timer_probe::delivered; });
      ASSERT_TRUE(delivered);
      EXPECT_GE(now(), early.deadline);
    }
    EXPECT_LT(now(), late.deadline);
  }
  EXPECT_TRUE(loop.cancel(late));
}

TEST(EventLoop, TimerArmedWhileNobodyHasADeadlineEndsTheWait) {
  event_loop loop(1);
  turner other(loop);
  other.timers = true;
  for (int i = 0; i < 100; ++i) {
    timer_probe timer;
    timer.prepare();
    if (i % 2 == 0) until_asleep(other.id());
    loop.arm(timer, now() + 50'000, 0);
    const bool delivered = eventually([&] { return timer.now_is == timer_probe::delivered; });
    ASSERT_TRUE(delivered);
  }
}

TEST(EventLoop, ArmingForLaterDoesNotEndABlockedWait) {
  event_loop loop(1);
  timer_probe first;
  first.prepare();
  loop.arm(first, now() + bound, 0);
  turner other(loop);
  other.timers = true;
  until_asleep(other.id());
  const long turns = other.turns();
  std::vector<timer_probe> later(100);
  for (auto& timer : later) {
    timer.prepare();
    loop.arm(timer, first.deadline + 1, 0);
  }
  EXPECT_EQ(other.turns(), turns);
  for (auto& timer : later) EXPECT_TRUE(loop.cancel(timer));
  EXPECT_TRUE(loop.cancel(first));
}

TEST(EventLoop, HundredThousandRandomTimersFireSorted) {
  constexpr std::size_t count = 100'000;
  event_loop loop(1);
  detail::random random(5);
  std::vector<timer_probe> timers(count);
  std::vector<std::int64_t> sorted;
  const std::int64_t start = now() - count;
  for (auto& timer : timers) {
    timer.prepare();
    sorted.push_back(start + random.below(count));
    loop.arm(timer, sorted.back(), 0);
  }
  std::ranges::sort(sorted);
  std::vector<std::int64_t> fired;
  for (event* each : poll(loop)) fired.push_back(static_cast<timer_event*>(each)->deadline);
  EXPECT_EQ(fired, sorted);
  EXPECT_EQ(loop.registrations(), 0u);
}

TEST(EventLoop, CancelRacesWithFiring) {
  // A timer is either taken back untouched or delivered, never both and never neither. Its memory is used again
  // immediately.
  constexpr int rounds = 20'000;
  event_loop loop(2);
  int cancelled = 0, delivered = 0;
  {
    turner other(loop);
    other.timers = true;
    detail::random random(6);
    for (int round = 0; round < rounds; ++round) {
      auto timer = std::make_unique<timer_probe>();
      timer->prepare();
      loop.arm(*timer, now() + random.below(30'000), random.below(2));
      const std::int64_t until = now() + random.below(60'000);
      while (now() < until) {
      }
      if (loop.cancel(*timer)) {
        ASSERT_EQ(timer->now_is, timer_probe::armed);
        ++cancelled;
      } else {
        const bool came = eventually([&] { return timer->now_is == timer_probe::delivered; });
        ASSERT_TRUE(came);
        ++delivered;
      }
    }
  }
  EXPECT_GT(cancelled, 0);
  EXPECT_GT(delivered, 0);
  EXPECT_EQ(loop.registrations(), 0u);
}

TEST(EventLoop, LostClaimRacesWithFiring) {
  // A timer that another thread takes is never delivered, and after the cancel its memory is free.
  event_loop loop(1);
  {
    turner other(loop);
    other.timers = true;
    detail::random random(7);
    for (int round = 0; round < 5000; ++round) {
      auto timer = std::make_unique<timer_probe>();
      timer->prepare();
      loop.arm(*timer, now() + random.below(20'000), 0);
      const std::int64_t until = now() + random.below(30'000);
      while (now() < until) {
      }
      const bool taken = timer->take_away();
      loop.cancel(*timer);
      const bool came = taken || eventually([&] { return timer->now_is == timer_probe::delivered; });
      ASSERT_TRUE(came);
      ASSERT_EQ(timer->now_is, taken ? timer_probe::idle : timer_probe::delivered);
    }
  }
}

TEST(EventLoopDeathTest, ArmingInAMissingShardPanics) {
  event_loop loop(2);
  timer_probe timer;
  EXPECT_DEATH(loop.arm(timer, 1, 2), "BUG: a timer was armed in shard 2 of 2");
}

}  // namespace
}  // namespace ulexite::test
