#include "support/crowd.hpp"
#include "support/kinds_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/timed_mutex.hpp>

#include <mutex>
#include <stop_token>
#include <thread>

// What both condition variables promise.
namespace {

using namespace ulexite;
using namespace ulexite::test;

struct of_mutex {
  static constexpr const char* name = "condition_variable";
  static constexpr bool takes_stop_tokens = false;
  using variable = condition_variable;
  using mutex = ulexite::mutex;
};
struct of_any_lock {
  static constexpr const char* name = "condition_variable_any";
  static constexpr bool takes_stop_tokens = true;
  using variable = condition_variable_any;
  using mutex = timed_mutex;
};

class ConditionVariables : public KindsTest<of_mutex, of_any_lock> {};
ULEXITE_TEST_KINDS(ConditionVariables);

TEST_P(ConditionVariables, NotifyOneWakesOneOfThem) {
  run_for_kind([]<class Kind> {
    typename Kind::mutex guard;
    typename Kind::variable condition;
    int waiting = 0, tokens = 0, woken = 0;
    task_group all;
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

TEST_P(ConditionVariables, NotifyAllWakesAllFibersAndThreads) {
  for_kind([&]<class Kind> {
    typename Kind::mutex guard;
    typename Kind::variable condition;
    int waiting = 0;
    bool go = false;
    auto wait = [&] {
      std::unique_lock lock(guard);
      ++waiting;
      condition.wait(lock, [&] { return go; });
      EXPECT_TRUE(lock.owns_lock());
    };
    crowd all(rt(), 5, 5, wait);
    wait_until([&] {
      const std::lock_guard lock(guard);
      return waiting == 10;
    });
    {
      const std::lock_guard lock(guard);
      go = true;
    }
    condition.notify_all();
    all.join();
  });
}

TEST_P(ConditionVariables, WaitsNoLongerThanAllowed) {
  for_kind([&]<class Kind> {
    auto check = [] {
      typename Kind::mutex guard;
      typename Kind::variable condition;
      std::unique_lock lock(guard);
      const auto start = ulexite::steady_clock::now();
      EXPECT_EQ(condition.wait_for(lock, 2ms), std::cv_status::timeout);
      EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
      EXPECT_TRUE(lock.owns_lock());
      EXPECT_THROW(guard.lock(), usage_error) << "held again";
      EXPECT_EQ(condition.wait_until(lock, ulexite::steady_clock::now() - 1s), std::cv_status::timeout);
      EXPECT_EQ(condition.wait_for(lock, -1h), std::cv_status::timeout);
      EXPECT_EQ(condition.wait_until(lock, ulexite::steady_clock::time_point::min()), std::cv_status::timeout);
      EXPECT_FALSE(condition.wait_for(lock, 1ms, [] { return false; }));
      EXPECT_TRUE(condition.wait_for(lock, 1h, [] { return true; }));
      int looks = 0;
      EXPECT_TRUE(condition.wait_until(lock, ulexite::steady_clock::now() + 1ms, [&] { return ++looks > 1; }));
      if constexpr (Kind::takes_stop_tokens) {
        std::stop_source source;
        EXPECT_FALSE(condition.wait_for(lock, source.get_token(), 1us, [] { return false; }));
      }
    };
    run(check);
    check();
  });
}

TEST_P(ConditionVariables, NotifyWithoutWaitersIsForgotten) {
  const auto check = []<class Kind> {
    typename Kind::mutex guard;
    typename Kind::variable condition;
    condition.notify_one();
    condition.notify_all();
    std::unique_lock lock(guard);
    EXPECT_EQ(condition.wait_for(lock, 1ms), std::cv_status::timeout);
  };
  run_for_kind(check);
  for_kind(check);
}

// The notification comes between the release of the mutex and the switch, again and again.
TEST_P(ConditionVariables, MissesNoNotification) {
  run_for_kind([]<class Kind> {
    typename Kind::mutex guard;
    typename Kind::variable condition;
    int turn = 0;
    task_group all;
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

TEST_P(ConditionVariables, TimeOutsRaceWithNotifications) {
  run_for_kind([]<class Kind> {
    typename Kind::mutex guard;
    typename Kind::variable condition;
    std::atomic<int> left{8};
    task_group all;
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

TEST_P(ConditionVariables, CancelledWaitHoldsTheMutexWhenItThrows) {
  run_for_kind([]<class Kind> {
    typename Kind::mutex guard;
    typename Kind::variable condition;
    const auto expect_thrown = [&](auto wait) {
      std::unique_lock lock(guard);
      auto waiter = spawn([&] {
        std::unique_lock mine(guard);
        EXPECT_THROW(wait(mine), operation_cancelled);
        EXPECT_TRUE(mine.owns_lock());
        EXPECT_THROW(guard.lock(), usage_error) << "held";
        EXPECT_THROW(wait(mine), operation_cancelled) << "for good";
        EXPECT_THROW(guard.lock(), usage_error) << "still held";
      });
      lock.unlock();
      wait_until_others_wait();
      waiter.request_stop();
      waiter.get();
      EXPECT_TRUE(guard.try_lock());
      guard.unlock();
    };
    const auto never = [] { return false; };
    expect_thrown([&](auto& lock) { condition.wait_for(lock, 1h); });
    expect_thrown([&](auto& lock) { condition.wait_until(lock, ulexite::steady_clock::time_point::max()); });
    expect_thrown([&](auto& lock) { condition.wait_for(lock, 1h, never); });
    expect_thrown([&](auto& lock) { condition.wait_until(lock, ulexite::steady_clock::now() + 1h, never); });
    expect_thrown([&](auto& lock) { condition.wait_until(lock, ulexite::steady_clock::time_point::max(), never); });
    if constexpr (Kind::takes_stop_tokens) {
      std::stop_source source;
      expect_thrown([&](auto& lock) { condition.wait(lock, source.get_token(), never); });
      expect_thrown([&](auto& lock) { condition.wait_for(lock, source.get_token(), 1h, never); });
      expect_thrown([&](auto& lock) { condition.wait(lock, std::stop_token(), never); });
    }
  });
}

TEST_P(ConditionVariables, TimedWaitMeetsTheDeadlineOfItsScope) {
  for_kind([&]<class Kind> {
    const auto check = [] {
      typename Kind::mutex guard;
      typename Kind::variable condition;
      std::unique_lock lock(guard);
      EXPECT_THROW(timeout(1ms, [&] { condition.wait_for(lock, 1h); }), deadline_exceeded);
      EXPECT_THROW(guard.lock(), usage_error) << "held";
      EXPECT_EQ(timeout(1h, [&] { return condition.wait_for(lock, 1us); }), std::cv_status::timeout);
    };
    run(check);
    check();
  });
}

TEST_P(ConditionVariables, MayBeDestroyedOnceAllAreNotified) {
  for_kind([&]<class Kind> {
    for (int round = 0; round < times(100); ++round) {
      typename Kind::mutex guard;
      auto condition = std::make_unique<typename Kind::variable>();
      int waiting = 0;
      bool go = false;
      const auto wait = [&] {
        std::unique_lock lock(guard);
        ++waiting;
        condition->wait(lock, [&] { return go; });
        --waiting;
      };
      std::vector<join_handle<>> all;
      for (int i = 0; i < 4; ++i) all.push_back(rt().spawn(wait));
      std::thread thread(wait);
      wait_until([&] {
        const std::lock_guard lock(guard);
        return waiting == 5;
      });
      {
        const std::lock_guard lock(guard);
        go = true;
        if (round % 2 == 0) condition->notify_all();
      }
      if (round % 2 != 0) condition->notify_all();
      condition.reset();
      for (auto& each : all) each.join();
      thread.join();
      EXPECT_EQ(waiting, 0);
    }
  });
}

// One notification for one token, and two who wait for it. The impatient one takes it only if it was notified; if it
// was, but says otherwise, the patient one waits for ever.
class ConditionVariablesRace : public ConditionVariables {
 protected:
  template <class Kind>
  void lose_none(bool with_stop, bool mutex_held) {
    run([&] {
      typename Kind::mutex guard;
      typename Kind::variable condition;
      int tokens = 0;
      for (int round = 0; round < times(1000); ++round) {
        const auto time = with_stop ? 1h : std::chrono::nanoseconds(round * 1021 % 40'000);
        auto impatient = spawn([&, time] {
          std::unique_lock lock(guard);
          try {
            if (condition.wait_for(lock, time) == std::cv_status::timeout) return false;
          } catch (const operation_cancelled&) {
            EXPECT_THROW(guard.lock(), usage_error) << "held";
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
          std::unique_lock lock(guard);
          ++tokens;
          if (!mutex_held) lock.unlock();
          condition.notify_one();
        };
        for (int i = round % 4; i > 0; --i) this_fiber::yield();
        if (with_stop && round % 2 == 0) impatient.request_stop();
        give();
        if (with_stop) impatient.request_stop();
        if (impatient.get()) give();
        patient.get();
        EXPECT_EQ(tokens, 0);
      }
    });
  }
};
ULEXITE_TEST_KINDS(ConditionVariablesRace);

TEST_P(ConditionVariablesRace, NoNotificationIsLostToATimeOut) {
  for_kind([&]<class Kind> { this->template lose_none<Kind>(false, false); });
}
TEST_P(ConditionVariablesRace, NoNotificationUnderTheMutexIsLostToATimeOut) {
  for_kind([&]<class Kind> { this->template lose_none<Kind>(false, true); });
}
TEST_P(ConditionVariablesRace, NoNotificationIsLostToACancellation) {
  for_kind([&]<class Kind> { this->template lose_none<Kind>(true, false); });
}
TEST_P(ConditionVariablesRace, NoNotificationUnderTheMutexIsLostToACancellation) {
  for_kind([&]<class Kind> { this->template lose_none<Kind>(true, true); });
}

}  // namespace
