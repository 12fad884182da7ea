// The standard library's locks in a run, with ulexite::mutex_check.

#include <ulexite.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
using ulexite::testing::expect;
using ulexite::testing::explore;
using ulexite::testing::find_failure;
using ulexite::testing::run_with_virtual_time;

void lose_an_update() {
  std::mutex m;
  int number = 0;
  const auto read = [&] {
    const std::lock_guard lock(m);
    return number;
  };
  const auto add_one = [&] {
    const int seen = read();
    const std::lock_guard lock(m);
    number = seen + 1;
  };
  task_group both;
  both.spawn(add_one);
  both.spawn(add_one);
  both.wait();
  expect(number == 2, "two updates");
}

TEST(StdLocks, AreOperations) {
  for (const char* const strategy : {"mixed", "exhaustive:2"}) {
    const auto found = find_failure({.strategy = strategy}, lose_an_update);
    ASSERT_TRUE(found.failure) << strategy;
    EXPECT_TRUE(find_failure({.replay = found.failure->replay}, lose_an_update).failure);
  }
}

std::mutex first, second;  // they outlive the runs, which abandon their holders

TEST(StdLocks, ACircleIsADeadlock) {
  const auto found = find_failure({}, [] {
    task_group both;
    both.spawn([] { const std::scoped_lock lock(first), inner(second); });
    both.spawn([] { const std::scoped_lock lock(second), inner(first); });
    both.wait();
  });
  ASSERT_TRUE(found.failure);
  EXPECT_TRUE(found.failure->reason.starts_with("deadlock: 3 fibers wait")) << found.failure->reason;
  EXPECT_NE(found.failure->report.find("circle: fiber #"), std::string::npos) << found.failure->report;
}

TEST(StdLocks, ExcludeOthersOverAWait) {
  explore({.schedules = 500}, [] {
    std::mutex m;
    int inside = 0;
    task_group all;
    for (int i = 0; i < 3; ++i)
      all.spawn([&] {
        const std::lock_guard lock(m);
        EXPECT_EQ(++inside, 1);
        this_fiber::sleep_for(1ms);
        --inside;
      });
    all.wait();
  });
}

TEST(StdLocks, AConditionVariableWaits) {
  explore({.schedules = 500}, [] {
    std::mutex m;
    std::condition_variable changed;
    int number = 0;
    task_group all;
    for (int i = 0; i < 2; ++i)
      all.spawn([&] {
        std::unique_lock lock(m);
        changed.wait(lock, [&] { return number > 0; });
        --number;
      });
    for (int i = 0; i < 2; ++i)
      all.spawn([&] {
        {
          const std::lock_guard lock(m);
          ++number;
        }
        changed.notify_one();
      });
    all.wait();
  });
  const auto lost = find_failure({}, [] {  // the flag is read and the wait begun in two steps
    std::mutex m;
    std::condition_variable changed;
    bool done = false;
    task_group both;
    both.spawn([&] {
      const bool seen = [&] {
        const std::lock_guard lock(m);
        return done;
      }();
      std::unique_lock lock(m);
      if (!seen) changed.wait(lock);
    });
    both.spawn([&] {
      const std::lock_guard lock(m);
      done = true;
      changed.notify_one();
    });
    both.wait();
  });
  ASSERT_TRUE(lost.failure);
  EXPECT_TRUE(lost.failure->reason.starts_with("deadlock")) << lost.failure->reason;
}

TEST(StdLocks, TimeLimitsAreInTheTimeOfTheRun) {
  const auto begin = std::chrono::steady_clock::now();
  run_with_virtual_time([] {
    const auto start = steady_clock::now();
    const auto start_of_std = std::chrono::steady_clock::now();
    std::mutex m;
    std::condition_variable never;
    std::unique_lock lock(m);
    EXPECT_FALSE(never.wait_for(lock, 1h, [] { return false; }));
    EXPECT_EQ(steady_clock::now() - start, 1h);
    EXPECT_EQ(std::chrono::steady_clock::now() - start_of_std, 1h);
    std::timed_mutex timed;
    const std::lock_guard held(timed);
    task_group other;
    other.spawn([&] { EXPECT_FALSE(timed.try_lock_for(1min)); });
    other.wait();
    EXPECT_EQ(steady_clock::now() - start, 61min);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1min);
}

TEST(StdLocks, ARecursiveMutexIsItsHoldersOften) {
  explore({.schedules = 100}, [] {
    std::recursive_mutex m;
    task_group all;
    int inside = 0;
    for (int i = 0; i < 2; ++i)
      all.spawn([&] {
        const std::lock_guard lock(m);
        const std::lock_guard again(m);
        EXPECT_EQ(++inside, 1);
        this_fiber::yield();
        --inside;
      });
    all.wait();
  });
}

TEST(StdLocks, ASecondLockByTheHolderThrows) {
  const auto found = find_failure({}, [] {
    std::mutex m;
    const std::lock_guard lock(m);
    m.lock();
  });
  ASSERT_TRUE(found.failure);
  EXPECT_NE(found.failure->reason.find("deadlock avoided"), std::string::npos) << found.failure->reason;
}

TEST(StdLocks, UnderNoSuspendNoOtherFiberRuns) {
  explore({.schedules = 300}, [] {
    std::mutex m;
    int inside = 0;
    task_group all;
    for (int i = 0; i < 3; ++i)
      all.spawn([&] {
        const no_suspend_scope step;
        EXPECT_EQ(++inside, 1);
        {
          const std::lock_guard lock(m);
        }
        --inside;
      });
    all.wait();
  });
}

}  // namespace
