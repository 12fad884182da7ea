#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Mutex : public WorkersTest {};
ULEXITE_TEST_WORKERS(Mutex);

TEST_P(Mutex, LetsOneInAtATime) {
  run([] {
    mutex guard;
    long count = 0;  // not atomic
    int inside = 0;
    wait_group all;
    for (int i = 0; i < 8; ++i)
      all.spawn([&] {
        for (int k = 0; k < times(2000); ++k) {
          const std::lock_guard lock(guard);
          EXPECT_EQ(++inside, 1);
          ++count;
          if (k % 64 == 0) this_fiber::yield();
          --inside;
        }
      });
    all.wait();
    EXPECT_EQ(count, 8L * times(2000));
  });
}

TEST_P(Mutex, IsSharedByFibersAndThreads) {
  mutex guard;
  long count = 0;
  auto work = [&] {
    for (int k = 0; k < times(5000); ++k) {
      const std::lock_guard lock(guard);
      ++count;
      if (k % 100 == 0) this_fiber::yield();
    }
  };
  std::vector<std::thread> threads;
  std::vector<join_handle<>> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(rt().spawn(work));
    threads.emplace_back(work);
  }
  for (auto& each : all) each.join();
  for (auto& each : threads) each.join();
  EXPECT_EQ(count, 6L * times(5000));
}

TEST_P(Mutex, TryLockSucceedsOnlyWhileItIsFree) {
  run([] {
    mutex guard;
    EXPECT_TRUE(guard.try_lock());
    EXPECT_FALSE(guard.try_lock());
    spawn([&] { EXPECT_FALSE(guard.try_lock()); }).join();
    std::thread([&] { EXPECT_FALSE(guard.try_lock()); }).join();
    guard.unlock();
    spawn([&] {
      EXPECT_TRUE(guard.try_lock());
      guard.unlock();
    }).join();
  });
}

TEST_P(Mutex, MisuseIsAUsageErrorAndChangesNothing) {
  run([] {
    mutex guard;
    EXPECT_THROW(guard.unlock(), usage_error);
    guard.lock();
    EXPECT_THROW(guard.lock(), usage_error);
    spawn([&] { EXPECT_THROW(guard.unlock(), usage_error); }).join();
    std::thread([&] { EXPECT_THROW(guard.unlock(), usage_error); }).join();
    EXPECT_FALSE(guard.try_lock());
    auto waiter = spawn([&] { const std::lock_guard lock(guard); });
    this_fiber::yield();
    EXPECT_THROW(guard.lock(), usage_error) << "contended too";
    guard.unlock();
    waiter.join();
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
  });
}

TEST_P(Mutex, BelongsToTheFiberWhereverItRuns) {
  run([] {
    mutex guard;
    std::atomic<bool> stop{false};
    wait_group others;
    for (int i = 0; i < 8; ++i) others.spawn([&] { wait_until([&] { return stop.load(); }); });
    for (int i = 0; i < times(1000); ++i) {
      const std::lock_guard lock(guard);
      this_fiber::yield();
    }
    stop = true;
    others.wait();
  });
}

TEST_P(Mutex, WorksWithScopedLock) {
  run([] {
    mutex one, two;
    long count = 0;
    wait_group all;
    for (int i = 0; i < 6; ++i)
      all.spawn([&, i] {
        for (int k = 0; k < times(1000); ++k) {
          if (i % 2 == 0) {
            const std::scoped_lock lock(one, two);
            ++count;
          } else {
            const std::scoped_lock lock(two, one);
            ++count;
          }
        }
      });
    all.wait();
    EXPECT_EQ(count, 6L * times(1000));
  });
}

// Whoever holds it takes it again at once, for ever; the waiter gets it all the same.
TEST_P(Mutex, AWaiterIsNotPassedOverForEver) {
  run([] {
    mutex guard;
    std::atomic<bool> got{false};
    wait_group greedy;
    for (int i = 0; i < 3; ++i)
      greedy.spawn([&] {
        while (!got) {
          const std::lock_guard lock(guard);
          this_fiber::yield();
        }
      });
    auto waiter = spawn([&] {
      for (int i = 0; i < 3; ++i) const std::lock_guard lock(guard);
      got = true;
    });
    waiter.join();
    greedy.wait();
  });
}

class ConditionVariable : public WorkersTest {};
ULEXITE_TEST_WORKERS(ConditionVariable);

TEST_P(ConditionVariable, NotifyOneWakesOneOfThem) {
  run([] {
    mutex guard;
    condition_variable condition;
    int waiting = 0, tokens = 0, woken = 0;
    wait_group all;
    for (int i = 0; i < 10; ++i)
      all.spawn([&] {
        std::unique_lock lock(guard);
        ++waiting;
        condition.wait(lock, [&] { return tokens > 0; });
        --tokens;
        ++woken;
      });
    const auto locked = [&](auto what) {
      const std::lock_guard lock(guard);
      return what();
    };
    wait_until([&] { return locked([&] { return waiting == 10; }); });
    for (int i = 1; i <= 10; ++i) {
      locked([&] { return ++tokens; });
      condition.notify_one();
      wait_until([&] { return locked([&] { return woken == i; }); });
    }
    all.wait();
  });
}

TEST_P(ConditionVariable, NotifyAllWakesAllFibersAndThreads) {
  mutex guard;
  condition_variable condition;
  int waiting = 0;
  bool go = false;
  auto wait = [&] {
    std::unique_lock lock(guard);
    ++waiting;
    condition.wait(lock, [&] { return go; });
    EXPECT_TRUE(lock.owns_lock());
  };
  std::vector<std::thread> threads;
  std::vector<join_handle<>> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(rt().spawn(wait));
    threads.emplace_back(wait);
  }
  wait_until([&] {
    const std::lock_guard lock(guard);
    return waiting == 10;
  });
  {
    const std::lock_guard lock(guard);
    go = true;
  }
  condition.notify_all();
  for (auto& each : all) each.join();
  for (auto& each : threads) each.join();
}

TEST_P(ConditionVariable, WaitsNoLongerThanAllowed) {
  auto check = [] {
    mutex guard;
    condition_variable condition;
    std::unique_lock lock(guard);
    const auto start = ulexite::clock::now();
    EXPECT_EQ(condition.wait_for(lock, 2ms), std::cv_status::timeout);
    EXPECT_GE(ulexite::clock::now() - start, 2ms);
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_THROW(guard.lock(), usage_error) << "held again";
    EXPECT_EQ(condition.wait_until(lock, ulexite::clock::now() - 1s), std::cv_status::timeout);
    EXPECT_FALSE(condition.wait_for(lock, 1ms, [] { return false; }));
    EXPECT_TRUE(condition.wait_for(lock, 1h, [] { return true; }));
    int looks = 0;
    EXPECT_TRUE(condition.wait_until(lock, ulexite::clock::now() + 1ms, [&] { return ++looks > 1; }));
  };
  run(check);
  check();
}

TEST_P(ConditionVariable, WaitWithoutHoldingIsAUsageError) {
  run([] {
    mutex guard;
    condition_variable condition;
    std::unique_lock lock(guard, std::defer_lock);
    EXPECT_THROW(condition.wait(lock), usage_error);
    EXPECT_FALSE(lock.owns_lock());
    lock.lock();
    spawn([&] { EXPECT_THROW(condition.wait(lock), usage_error); }).join();
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(guard.try_lock());
  });
}

TEST_P(ConditionVariable, NotifyWithoutWaitersIsForgotten) {
  run([] {
    mutex guard;
    condition_variable condition;
    condition.notify_one();
    condition.notify_all();
    std::unique_lock lock(guard);
    EXPECT_EQ(condition.wait_for(lock, 1ms), std::cv_status::timeout);
  });
}

// The notification comes between the release of the mutex and the switch, again and again.
TEST_P(ConditionVariable, MissesNoNotification) {
  run([] {
    mutex guard;
    condition_variable condition;
    int turn = 0;
    wait_group all;
    for (int me = 0; me < 3; ++me)
      all.spawn([&, me] {
        for (int i = 0; i < times(2000); ++i) {
          std::unique_lock lock(guard);
          condition.wait(lock, [&] { return turn == me; });
          turn = (turn + 1) % 3;
          if (i % 2 == 0) lock.unlock();
          condition.notify_all();
        }
      });
    all.wait();
  });
}

TEST_P(ConditionVariable, TimeOutsRaceWithNotifications) {
  run([] {
    mutex guard;
    condition_variable condition;
    std::atomic<int> left{8};
    wait_group all;
    for (int i = 0; i < 8; ++i)
      all.spawn([&, i] {
        for (int k = 0; k < times(300); ++k) {
          std::unique_lock lock(guard);
          condition.wait_for(lock, std::chrono::microseconds((i * 7 + k) % 50));
        }
        --left;
      });
    while (left > 0) {
      condition.notify_one();
      this_fiber::yield();
    }
    all.wait();
  });
}

}  // namespace
