// The waiters that run after a notification of a condition variable, and the waiters that do not. With one worker the
// test decides that.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <numeric>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ConditionVariableQueue : public RuntimeTest {
 protected:
  static constexpr int count = 10;

  template <class F>
  void run(F&& test) {
    rt_.run(std::forward<F>(test));
  }
  // The same, once `count` fibers wait, in this order. Waiters that still wait afterwards are released.
  template <class F>
  void run_with_waiters(F&& test) {
    run([&] {
      task_group all;
      for (int i = 0; i < count; ++i) {
        all.spawn([this, i] {
          std::unique_lock lock(guard);
          condition.wait(lock);
          woken.push_back(i);
        });
        settle();
      }
      test();
      condition.notify_all();
      all.wait();
      EXPECT_EQ(woken, first(count));
    });
  }
  // All others run until they have nothing to do.
  static void settle() {
    for (int i = 0; i < 4; ++i) this_fiber::yield();
  }
  // How often another fiber is given the worker until all have nothing to do.
  int runs_of_others() {
    constexpr int yields = 5 * count;
    const auto before = rt_.metrics().dispatches;
    for (int i = 0; i < yields; ++i) this_fiber::yield();
    return static_cast<int>(rt_.metrics().dispatches - before) - yields;
  }
  static std::vector<int> first(int n) {
    std::vector<int> numbers(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  mutex guard;
  condition_variable condition;
  std::vector<int> woken;

 private:
  runtime& rt_ = make(1);
};

TEST_F(ConditionVariableQueue, NotifyOneWakesTheOldestAndNoOther) {
  run_with_waiters([this] {
    for (int i = 1; i < count; ++i) {
      condition.notify_one();
      EXPECT_EQ(runs_of_others(), 1);
      EXPECT_EQ(woken, first(i));
    }
  });
}

TEST_F(ConditionVariableQueue, NotifyAllUnderTheMutexRunsEachOnceAndAfterTheUnlock) {
  run_with_waiters([this] {
    std::unique_lock lock(guard);
    condition.notify_all();
    EXPECT_EQ(runs_of_others(), 0);
    lock.unlock();
    EXPECT_EQ(runs_of_others(), count);
    EXPECT_EQ(woken, first(count));
  });
}

TEST_F(ConditionVariableQueue, NotifyOneUnderTheMutexRunsOneAfterTheUnlock) {
  run_with_waiters([this] {
    std::unique_lock lock(guard);
    for (int i = 0; i < 3; ++i) condition.notify_one();
    EXPECT_EQ(runs_of_others(), 0);
    lock.unlock();
    EXPECT_EQ(runs_of_others(), 3);
    EXPECT_EQ(woken, first(3));
  });
}

TEST_F(ConditionVariableQueue, NotifyAllWithTheMutexFreeRunsEachOnce) {
  run_with_waiters([this] {
    condition.notify_all();
    EXPECT_EQ(runs_of_others(), count);
    EXPECT_EQ(woken, first(count));
  });
}

TEST_F(ConditionVariableQueue, NotifyWhileAnotherHoldsTheMutexRunsNobody) {
  run_with_waiters([this] {
    wait_group go(1);
    auto holder = spawn([&] {
      const std::lock_guard lock(guard);
      go.wait();
    });
    settle();
    condition.notify_one();
    condition.notify_all();
    EXPECT_EQ(runs_of_others(), 0);
    go.done();
    EXPECT_EQ(runs_of_others(), count + 1);
    EXPECT_EQ(woken, first(count));
    holder.join();
  });
}

TEST_F(ConditionVariableQueue, NotifiedWaitersQueueBehindThoseWhoWaitForTheMutex) {
  run([this] {
    std::unique_lock lock(guard);
    auto waiter = spawn([&] {
      std::unique_lock mine(guard);
      condition.wait(mine);
      woken.push_back(1);
    });
    lock.unlock();
    settle();
    lock.lock();
    auto locker = spawn([&] {
      const std::lock_guard mine(guard);
      woken.push_back(0);
    });
    settle();
    condition.notify_one();
    lock.unlock();
    waiter.join();
    locker.join();
    EXPECT_EQ(woken, first(2));
  });
}

// It is in the queue of the mutex when its time is over.
TEST_F(ConditionVariableQueue, NotificationBeforeTheTimeOutPrevails) {
  run([this] {
    for (bool in_time = false; !in_time;) {
      const auto start = ulexite::steady_clock::now();
      auto waiter = spawn([&] {
        std::unique_lock lock(guard);
        return condition.wait_for(lock, 20ms);
      });
      settle();
      std::unique_lock lock(guard);
      condition.notify_one();
      in_time = ulexite::steady_clock::now() - start < 20ms;  // else it was too slow to tell anything
      auto next = spawn([&] { const std::lock_guard mine(guard); });
      this_fiber::sleep_for(25ms);
      lock.unlock();
      if (const auto status = waiter.get(); in_time) EXPECT_EQ(status, std::cv_status::no_timeout);
      next.join();
    }
  });
}

TEST_F(ConditionVariableQueue, NotificationBeforeTheCancellationPrevails) {
  run([this] {
    auto waiter = spawn([&] {
      std::unique_lock lock(guard);
      EXPECT_EQ(condition.wait_for(lock, 1h), std::cv_status::no_timeout);
      EXPECT_THROW(guard.lock(), usage_error) << "held";
      EXPECT_THROW(this_fiber::check(), operation_cancelled);
      return true;
    });
    settle();
    std::unique_lock lock(guard);
    condition.notify_one();
    waiter.request_stop();
    settle();
    EXPECT_FALSE(waiter.done());
    lock.unlock();
    EXPECT_TRUE(waiter.get());
  });
}

// The oldest is asked to stop, but has not yet left the queue when the notification comes: it goes to one of the two.
TEST_F(ConditionVariableQueue, NotificationAfterTheCancellationIsNotLost) {
  for (const bool held : {false, true})
    run([this, held] {
      int notified = 0, cancelled = 0;
      const auto wait = [&] {
        std::unique_lock lock(guard);
        try {
          EXPECT_EQ(condition.wait_for(lock, 1h), std::cv_status::no_timeout);
          ++notified;
        } catch (const operation_cancelled&) {
          ++cancelled;
        }
      };
      auto older = spawn(wait);
      settle();
      auto younger = spawn(wait);
      settle();
      older.request_stop();
      std::unique_lock lock(guard, std::defer_lock);
      if (held) lock.lock();
      condition.notify_one();
      if (held) lock.unlock();
      settle();
      EXPECT_EQ(notified, 1);
      younger.request_stop();
      older.join();
      younger.join();
      EXPECT_EQ(notified, 1);
      EXPECT_EQ(cancelled, 1);
    });
}

}  // namespace
