#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/timed_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <stop_token>
#include <thread>

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
    std::vector<std::thread> plain;
    std::vector<join_handle<>> handles;
    for (int me = 0; me < all; ++me) {
      if (me < fibers) {
        handles.push_back(rt().spawn(work, me));
      } else {
        plain.emplace_back(work, me);
      }
    }
    for (auto& each : handles) each.join();
    for (auto& each : plain) each.join();
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

TEST_P(ConditionVariableAny, WaitsNoLongerThanAllowed) {
  const auto check = [] {
    timed_mutex guard;
    condition_variable_any condition;
    std::unique_lock lock(guard);
    const auto start = ulexite::steady_clock::now();
    EXPECT_EQ(condition.wait_for(lock, 2ms), std::cv_status::timeout);
    EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    EXPECT_THROW(guard.lock(), usage_error) << "held again";
    EXPECT_EQ(condition.wait_for(lock, -1h), std::cv_status::timeout);
    EXPECT_EQ(condition.wait_until(lock, ulexite::steady_clock::time_point::min()), std::cv_status::timeout);
    EXPECT_FALSE(condition.wait_for(lock, 1ms, [] { return false; }));
    EXPECT_TRUE(condition.wait_for(lock, 1h, [] { return true; }));
    int looks = 0;
    EXPECT_TRUE(condition.wait_until(lock, ulexite::steady_clock::now() + 1ms, [&] { return ++looks > 1; }));
    condition.notify_one();
    condition.notify_all();
    EXPECT_EQ(condition.wait_for(lock, 1us), std::cv_status::timeout) << "nobody waited then";
    std::stop_source source;
    EXPECT_FALSE(condition.wait_for(lock, source.get_token(), 1us, [] { return false; }));
    EXPECT_THROW(timeout(1ms, [&] { condition.wait_for(lock, 1h); }), deadline_exceeded);
    EXPECT_THROW(guard.lock(), usage_error) << "held again";
  };
  run(check);
  check();
}

TEST_P(ConditionVariableAny, CancelledWaitHoldsTheLockWhenItThrows) {
  run([] {
    timed_mutex guard;
    condition_variable_any condition;
    std::stop_source source;
    const auto expect_thrown = [&](auto wait) {
      auto waiter = spawn([&] {
        std::unique_lock mine(guard);
        EXPECT_THROW(wait(mine), operation_cancelled);
        EXPECT_TRUE(mine.owns_lock());
        EXPECT_THROW(guard.lock(), usage_error) << "held";
        EXPECT_THROW(wait(mine), operation_cancelled) << "for good";
      });
      wait_until_others_wait();
      waiter.request_stop();
      waiter.get();
      EXPECT_TRUE(guard.try_lock());
      guard.unlock();
    };
    const auto never = [] { return false; };
    expect_thrown([&](auto& lock) { condition.wait_for(lock, 1h); });
    expect_thrown([&](auto& lock) { condition.wait_until(lock, ulexite::steady_clock::time_point::max(), never); });
    expect_thrown([&](auto& lock) { condition.wait(lock, source.get_token(), never); });
    expect_thrown([&](auto& lock) { condition.wait_for(lock, source.get_token(), 1h, never); });
    expect_thrown([&](auto& lock) { condition.wait(lock, std::stop_token(), never); });
  });
}

TEST_P(ConditionVariableAny, PlainWaitIsNoCancellationPoint) {
  run([] {
    timed_mutex guard;
    condition_variable_any condition;
    bool go = false;
    auto waiter = spawn([&] {
      const deadline_scope scope(0s);
      std::unique_lock lock(guard);
      condition.wait(lock, [&] { return go; });
      return this_fiber::stop_requested();
    });
    wait_until_others_wait();
    waiter.request_stop();
    wait_until_others_wait();
    EXPECT_FALSE(waiter.done());
    {
      const std::lock_guard lock(guard);
      go = true;
    }
    condition.notify_one();
    EXPECT_TRUE(waiter.get());
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
    const bool last =
        i < 3 ? condition.wait(lock, source.get_token(), gone) : condition.wait_for(lock, source.get_token(), 1h, gone);
    EXPECT_EQ(last, i % 2 == 0) << "the last value of the condition";
    EXPECT_THROW(guard.lock(), usage_error) << "held";
  };
  std::vector<std::thread> threads;
  std::vector<join_handle<>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(rt().spawn(wait, i));
    threads.emplace_back(wait, i);
  }
  wait_until([&] {
    const std::lock_guard lock(guard);
    return waiting == 12;
  });
  {
    const std::lock_guard lock(guard);
    go = true;
  }
  source.request_stop();
  for (auto& each : all) each.join();
  for (auto& each : threads) each.join();
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
      wait_group all;
      all.spawn([&] { wait(0); });
      all.spawn([&] { wait(19); });
      all.spawn([&] { i % 2 == 0 ? condition.notify_one() : condition.notify_all(); });
      for (int k = i % 3; k > 0; --k) this_fiber::yield();
      source.request_stop();
      all.wait();
    }
  });
}

// See ConditionVariableRace: the patient one would wait for ever, had the impatient one kept a notification to itself.
TEST_P(ConditionVariableAny, NoNotificationIsLostToATimeOutOrACancellation) {
  run([] {
    timed_mutex guard;
    condition_variable_any condition;
    int tokens = 0;
    for (int round = 0; round < times(1000); ++round) {
      const bool with_stop = round % 2 == 0;
      auto impatient = spawn([&, time = with_stop ? 1h : std::chrono::nanoseconds(round * 1021 % 40'000)] {
        std::unique_lock lock(guard);
        try {
          if (condition.wait_for(lock, time) == std::cv_status::timeout) return false;
        } catch (const operation_cancelled&) {
          return false;
        }
        return tokens > 0 && tokens-- > 0;
      });
      auto patient = spawn([&] {
        std::unique_lock lock(guard);
        condition.wait(lock, [&] { return tokens > 0; });
        --tokens;
      });
      const auto give = [&] {
        {
          const std::lock_guard lock(guard);
          ++tokens;
        }
        condition.notify_one();
      };
      for (int i = round % 4; i > 0; --i) this_fiber::yield();
      if (round % 4 == 0) impatient.request_stop();
      give();
      if (with_stop) impatient.request_stop();
      if (impatient.get()) give();
      patient.get();
      EXPECT_EQ(tokens, 0);
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
    auto waiter = spawn([&] {
      refusing lock;
      for (int i = 0; i < 3; ++i) EXPECT_THROW(condition.wait(lock), int);
      EXPECT_THROW(condition.wait_for(lock, 1h), int);
      this_fiber::sleep_for(1us);  // a wait as usual
      std::unique_lock mine(guard);
      EXPECT_THROW(condition.wait_for(lock, 0s), int);
      condition.wait(mine, [&] { return go; });
    });
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
