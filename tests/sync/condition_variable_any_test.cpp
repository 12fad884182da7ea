#include "support/crowd.hpp"
#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/timed_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <stop_token>

// What it has in common with others is in condition_variables_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

// A lock such as users make: its unlock may have to wait.
class waiting_lock {
 public:
  void lock() {
    std::unique_lock inside(inner);
    free_.wait(inside, [&] { return !taken_; });
    taken_ = true;
  }
  void unlock() {
    const std::lock_guard inside(inner);
    taken_ = false;
    this_fiber::yield();
    free_.notify_one();
  }

  mutex inner;

 private:
  condition_variable free_;
  bool taken_ = false;
};

using ConditionVariableAnyLock = RuntimeTest;
class ConditionVariableAny : public WorkersTest {
 protected:
  // Fibers and threads take turns under a lock of that kind.
  template <class Lock, class Mutex>
  void take_turns(Mutex& guard, int fibers, int threads) {
    condition_variable_any condition;
    const int all = fibers + threads;
    int turn = 0;
    const auto work = [&](int me) {
      for (int i = 0; i < times(300); ++i) {
        Lock lock(guard);
        const auto mine = [&] { return turn % all == me; };
        if (i % 3 == 0) {
          condition.wait(lock, mine);
        } else if (i % 3 == 1) {
          while (!condition.wait_for(lock, std::chrono::microseconds(i % 50), mine)) {
          }
        } else {
          EXPECT_TRUE(condition.wait_until(lock, ulexite::steady_clock::now() + 1h, mine));
        }
        ++turn;
        condition.notify_all();
      }
    };
    crowd(rt(), fibers, threads, work).join();
    EXPECT_EQ(turn, all * times(300));
  }
};
ULEXITE_TEST_WORKERS(ConditionVariableAny);

TEST_P(ConditionVariableAny, WorksOverMutex) {
  mutex guard;
  take_turns<std::unique_lock<mutex>>(guard, 3, 2);
}

TEST_P(ConditionVariableAny, WorksOverTimedMutex) {
  timed_mutex guard;
  take_turns<std::unique_lock<timed_mutex>>(guard, 3, 2);
}

TEST_P(ConditionVariableAny, WorksOverRecursiveMutex) {
  recursive_mutex guard;
  take_turns<std::unique_lock<recursive_mutex>>(guard, 3, 2);
}

TEST_P(ConditionVariableAny, WorksOverALockWhoseUnlockWaits) {
  waiting_lock guard;
  take_turns<std::unique_lock<waiting_lock>>(guard, 3, 2);
}

TEST_P(ConditionVariableAny, WorksOverStdMutexOnThreads) {
  std::mutex guard;
  take_turns<std::unique_lock<std::mutex>>(guard, 0, 3);
}

TEST_P(ConditionVariableAny, WaitsOnTheMutexItself) {
  run([] {
    recursive_mutex guard;
    condition_variable_any condition;
    bool go = false;
    auto waiter = spawn([&] {
      guard.lock();
      condition.wait(guard, [&] { return go; });
      guard.unlock();
      EXPECT_THROW(guard.unlock(), usage_error);
    });
    {
      const std::lock_guard lock(guard);
      go = true;
    }
    condition.notify_one();
    waiter.get();
  });
}

// ---- stop tokens ----

TEST_P(ConditionVariableAny, AStoppedTokenLetsNobodyWait) {
  const auto check = [] {
    timed_mutex guard;
    condition_variable_any condition;
    std::stop_source source;
    source.request_stop();
    std::unique_lock lock(guard);
    const auto token = source.get_token();
    EXPECT_FALSE(condition.wait(lock, token, [] { return false; }));
    EXPECT_TRUE(condition.wait(lock, token, [] { return true; }));
    EXPECT_FALSE(condition.wait_for(lock, token, 1h, [] { return false; }));
    EXPECT_FALSE(condition.wait_until(lock, token, ulexite::steady_clock::time_point::max(), [] { return false; }));
    EXPECT_THROW(guard.lock(), usage_error) << "held";
  };
  run(check);
  check();
}

TEST_P(ConditionVariableAny, AStopEndsTheWaitsOfFibersAndThreads) {
  timed_mutex guard;
  condition_variable_any condition;
  std::stop_source source;
  int waiting = 0;
  bool go = false;
  const auto wait = [&](int i) {
    std::unique_lock lock(guard);
    ++waiting;
    const auto gone = [&] { return go && i % 2 == 0; };
    const bool last = i % 6 < 3 ? condition.wait(lock, source.get_token(), gone)
                                : condition.wait_for(lock, source.get_token(), 1h, gone);
    EXPECT_EQ(last, i % 2 == 0) << "the last value of the condition";
    EXPECT_THROW(guard.lock(), usage_error) << "held";
  };
  crowd all(rt(), 6, 6, wait);
  wait_until([&] {
    const std::lock_guard lock(guard);
    return waiting == 12;
  });
  {
    const std::lock_guard lock(guard);
    go = true;
  }
  source.request_stop();
  all.join();
}

// The waiter comes and goes while the others race for it. After any end of the wait, no thread touches it.
TEST_P(ConditionVariableAny, StopsNotificationsAndTimeOutsRace) {
  run([] {
    timed_mutex guard;
    condition_variable_any condition;
    for (int i = 0; i < times(1000); ++i) {
      std::stop_source source;
      const auto wait = [&, i](int shift) {
        std::unique_lock lock(guard);
        (void)condition.wait_for(lock, source.get_token(), std::chrono::microseconds((i * 7 + shift) % 40),
                                 [&] { return false; });
        EXPECT_TRUE(lock.owns_lock());
      };
      task_group all;
      all.spawn([&] { wait(0); });
      all.spawn([&] { wait(19); });
      all.spawn([&] { i % 2 == 0 ? condition.notify_one() : condition.notify_all(); });
      for (int k = i % 3; k > 0; --k) this_fiber::yield();
      source.request_stop();
      all.wait();
    }
  });
}

// ---- locks with a will of their own ----

TEST_P(ConditionVariableAny, AnUnlockThatThrowsLeavesNoWaiterBehind) {
  struct refusing {
    void lock() {}
    void unlock() { throw 5; }
  };
  run([] {
    condition_variable_any condition;
    timed_mutex guard;
    bool go = false;
    std::atomic<bool> there{false};
    auto waiter = spawn([&] {
      refusing lock;
      for (int i = 0; i < 3; ++i) EXPECT_THROW(condition.wait(lock), int);
      EXPECT_THROW(condition.wait_for(lock, 1h), int);
      this_fiber::sleep_for(1us);  // a wait as usual
      std::unique_lock mine(guard);
      there = true;
      EXPECT_THROW(condition.wait_for(lock, 0s), int);
      condition.wait(mine, [&] { return go; });
    });
    wait_until([&] { return there.load(); });
    wait_until_others_wait();
    {
      const std::lock_guard lock(guard);
      go = true;
    }
    condition.notify_one();  // none of those left behind takes it
    waiter.get();
    condition.notify_all();
  });
}

// With one worker the test decides who runs when: the notification comes while the waiter waits for what its lock's
// unlock needs. It ends the wait for the condition, not that one.
TEST_F(ConditionVariableAnyLock, MayWaitInItsUnlock) {
  for (const bool notify : {true, false}) {
    make(1).run([notify] {
      waiting_lock guard;
      condition_variable_any condition;
      wait_group go(1);
      bool ready = false;
      auto waiter = spawn([&] {
        std::unique_lock lock(guard);
        go.wait();
        ready = true;
        condition.wait(lock);
      });
      wait_until_others_wait();
      std::unique_lock inside(guard.inner);
      go.done();
      wait_until_others_wait();
      EXPECT_TRUE(ready);
      if (notify) condition.notify_one();
      wait_until_others_wait();
      inside.unlock();
      wait_until_others_wait();
      EXPECT_EQ(waiter.done(), notify);
      condition.notify_one();
      waiter.join();
    });
  }
}

}  // namespace
