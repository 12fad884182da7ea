#include <ulexite/base/random.hpp>
#include <ulexite/evloop/timer_heap.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace ulexite::test {
namespace {

using detail::timer_event;
using detail::timer_heap;

timer_event at(std::int64_t deadline) {
  timer_event timer;
  timer.deadline = deadline;
  return timer;
}

TEST(TimerHeap, EmptyOneHasNoDeadline) {
  timer_heap heap;
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.earliest(), INT64_MAX);
}

TEST(TimerHeap, PopsInOrderOfDeadline) {
  timer_heap heap;
  std::vector<timer_event> timers;
  for (std::int64_t deadline : {5, 3, 9, 1, 7, 3}) timers.push_back(at(deadline));
  for (timer_event& timer : timers) heap.push(timer);
  for (std::int64_t deadline : {1, 3, 3, 5, 7, 9}) {
    EXPECT_EQ(heap.earliest(), deadline);
    EXPECT_EQ(heap.pop().deadline, deadline);
  }
  EXPECT_TRUE(heap.empty());
}

TEST(TimerHeap, PoppedAndRemovedTimersAreIdle) {
  timer_heap heap;
  timer_event first = at(1), second = at(2);
  heap.push(first);
  heap.push(second);
  EXPECT_NE(second.position, timer_event::idle);
  heap.remove(second);
  EXPECT_EQ(second.position, timer_event::idle);
  EXPECT_EQ(&heap.pop(), &first);
  EXPECT_EQ(first.position, timer_event::idle);
}

TEST(TimerHeap, RemovedLeafMayHaveToRise) {
  // The last item replaces the removed one, and comes from a branch with earlier deadlines.
  timer_heap heap;
  std::vector<timer_event> timers;
  for (std::int64_t deadline : {0, 100, 1, 2, 3, 101, 102, 103, 104, 10}) timers.push_back(at(deadline));
  for (timer_event& timer : timers) heap.push(timer);
  heap.remove(timers[6]);
  std::int64_t last = -1;
  while (!heap.empty()) {
    const std::int64_t deadline = heap.pop().deadline;
    EXPECT_LE(last, deadline);
    last = deadline;
  }
}

TEST(TimerHeap, HundredThousandRandomTimersLeaveSorted) {
  constexpr std::size_t count = 100'000;
  detail::random random(1);
  const auto timers = std::make_unique<timer_event[]>(count);
  std::vector<std::int64_t> sorted;
  timer_heap heap;
  for (std::size_t i = 0; i < count; ++i) {
    timers[i].deadline = random.below(count / 2);
    sorted.push_back(timers[i].deadline);
    heap.push(timers[i]);
  }
  std::ranges::sort(sorted);
  for (std::int64_t deadline : sorted) ASSERT_EQ(heap.pop().deadline, deadline);
  EXPECT_TRUE(heap.empty());
}

TEST(TimerHeap, RandomPushesPopsAndRemovalsMatchASet) {
  constexpr std::size_t count = 2000;
  detail::random random(2);
  const auto timers = std::make_unique<timer_event[]>(count);
  std::multiset<std::int64_t> reference;
  timer_heap heap;
  for (int step = 0; step < 200'000; ++step) {
    timer_event& timer = timers[random.below(count)];
    if (timer.position == timer_event::idle) {
      timer.deadline = random.below(1000);
      heap.push(timer);
      reference.insert(timer.deadline);
    } else if (random.below(2) == 0) {
      heap.remove(timer);
      reference.erase(reference.find(timer.deadline));
    } else {
      ASSERT_EQ(heap.pop().deadline, *reference.begin());
      reference.erase(reference.begin());
    }
    ASSERT_EQ(heap.size(), reference.size());
    ASSERT_EQ(heap.earliest(), reference.empty() ? INT64_MAX : *reference.begin());
  }
}

TEST(TimerHeapDeathTest, ArmingAnArmedTimerPanics) {
  timer_heap heap;
  timer_event timer = at(1);
  heap.push(timer);
  EXPECT_DEATH(heap.push(timer), "BUG: a timer was armed twice");
}

}  // namespace
}  // namespace ulexite::test
