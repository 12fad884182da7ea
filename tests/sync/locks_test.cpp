#include "support/kinds_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/shared_mutex.hpp>
#include <ulexite/sync/timed_mutex.hpp>

#include <limits>
#include <mutex>
#include <thread>

// What all locks promise.
namespace {

using namespace ulexite;
using namespace ulexite::test;
using time_point = ulexite::steady_clock::time_point;

struct plain_lock : mutex {
  static constexpr const char* name = "mutex";
  static constexpr bool recursive = false;
};
struct timed_lock : timed_mutex {
  static constexpr const char* name = "timed_mutex";
  static constexpr bool recursive = false;
};
struct recursive_lock : recursive_mutex {
  static constexpr const char* name = "recursive_mutex";
  static constexpr bool recursive = true;
};
struct exclusive_lock : ulexite::shared_mutex {
  static constexpr const char* name = "shared_mutex";
  static constexpr bool recursive = false;
};

class Locks : public KindsTest<plain_lock, timed_lock, recursive_lock, exclusive_lock> {
 protected:
  // The owner may lock again only what is recursive.
  template <class Lock>
  static void expect_owner_may_lock_again_if_recursive(Lock& guard) {
    EXPECT_EQ(guard.try_lock(), Lock::recursive);
    if constexpr (Lock::recursive) {
      guard.unlock();
    } else {
      EXPECT_THROW(guard.lock(), usage_error);
    }
  }
};
ULEXITE_TEST_KINDS(Locks);

TEST_P(Locks, TryLockSucceedsOnlyWhileFree) {
  run_for_kind([]<class Lock> {
    Lock guard;
    EXPECT_TRUE(guard.try_lock());
    expect_owner_may_lock_again_if_recursive(guard);
    spawn([&] { EXPECT_FALSE(guard.try_lock()); }).join();
    std::thread([&] { EXPECT_FALSE(guard.try_lock()); }).join();
    guard.unlock();
    spawn([&] {
      const std::unique_lock lock(guard, std::try_to_lock);
      EXPECT_TRUE(lock.owns_lock());
    }).join();
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
  });
}

TEST_P(Locks, MisuseIsAUsageErrorAndChangesNothing) {
  run_for_kind([]<class Lock> {
    Lock guard;
    EXPECT_THROW(guard.unlock(), usage_error);
    guard.lock();
    expect_owner_may_lock_again_if_recursive(guard);
    for (int i = 0; i < 3; ++i) spawn([&] { EXPECT_THROW(guard.unlock(), usage_error); }).join();
    std::thread([&] { EXPECT_THROW(guard.unlock(), usage_error); }).join();
    EXPECT_FALSE(spawn([&] { return guard.try_lock(); }).get());
    auto waiter = spawn([&] { const std::lock_guard lock(guard); });
    this_fiber::yield();
    expect_owner_may_lock_again_if_recursive(guard);  // contended too
    guard.unlock();
    waiter.join();
    EXPECT_THROW(guard.unlock(), usage_error);
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
  });
}

TEST_P(Locks, MisuseOnAPlainThreadIsAUsageErrorToo) {
  for_kind([&]<class Lock> {
    Lock guard;
    EXPECT_THROW(guard.unlock(), usage_error);
    guard.lock();
    expect_owner_may_lock_again_if_recursive(guard);
    run([&] {
      EXPECT_FALSE(guard.try_lock());
      EXPECT_THROW(guard.unlock(), usage_error);
    });
    guard.unlock();
    EXPECT_THROW(guard.unlock(), usage_error);
  });
}

// ---- with a time limit ----

class TimedLocks : public KindsTest<timed_lock, exclusive_lock> {};
ULEXITE_TEST_KINDS(TimedLocks);

TEST_P(TimedLocks, AreTakenWhileFreeWhateverTheTime) {
  const auto check = []<class Lock> {
    Lock guard;
    const auto take = [&](auto attempt) {
      EXPECT_TRUE(attempt());
      EXPECT_FALSE(guard.try_lock());
      guard.unlock();
    };
    take([&] { return guard.try_lock_for(0s); });
    take([&] { return guard.try_lock_for(-1h); });
    take([&] { return guard.try_lock_for(std::chrono::hours::max()); });
    take([&] { return guard.try_lock_for(std::chrono::hours::min()); });
    take([&] { return guard.try_lock_for(std::chrono::duration<double>(std::numeric_limits<double>::infinity())); });
    take([&] { return guard.try_lock_until(time_point::min()); });
    take([&] { return guard.try_lock_until(time_point::max()); });
  };
  run_for_kind(check);
  for_kind(check);
}

TEST_P(TimedLocks, GiveUpWhenTheTimeIsOver) {
  for_kind([&]<class Lock> {
    Lock guard;
    const auto check = [&] {
      EXPECT_FALSE(guard.try_lock());
      EXPECT_FALSE(guard.try_lock_for(0s));
      EXPECT_FALSE(guard.try_lock_for(-1h));
      EXPECT_FALSE(guard.try_lock_for(std::chrono::hours::min()));
      EXPECT_FALSE(guard.try_lock_until(time_point::min()));
      EXPECT_FALSE(guard.try_lock_until(ulexite::steady_clock::now() - 1s));
      const auto start = ulexite::steady_clock::now();
      EXPECT_FALSE(guard.try_lock_for(2ms));
      EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    };
    run([&] {
      const std::lock_guard lock(guard);
      spawn(check).join();
      std::thread(check).join();
    });
    const std::lock_guard lock(guard);
    run(check);
  });
}

TEST_P(TimedLocks, AreTakenWhenTheyComeFreeInTime) {
  run_for_kind([]<class Lock> {
    Lock guard;
    std::unique_lock lock(guard);
    std::atomic<int> coming{0};
    std::vector<join_handle<>> all;
    const auto come = [&](auto attempt) {
      all.push_back(spawn([&, attempt] {
        ++coming;
        EXPECT_TRUE(attempt());
        guard.unlock();
      }));
    };
    come([&] { return guard.try_lock_for(1h); });
    come([&] { return guard.try_lock_for(std::chrono::hours::max()); });
    come([&] { return guard.try_lock_for(std::chrono::duration<float>(1e30f)); });
    come([&] { return guard.try_lock_until(time_point::max()); });
    come([&] { return std::unique_lock(guard, 1h).release() != nullptr; });
    wait_until([&] { return coming == 5; });
    wait_until_others_wait();
    lock.unlock();
    for (auto& each : all) each.join();
  });
}

TEST_P(TimedLocks, AskedForByTheirOwnerAreAUsageError) {
  run_for_kind([]<class Lock> {
    Lock guard;
    guard.lock();
    EXPECT_THROW((void)guard.try_lock_for(0s), usage_error);
    EXPECT_THROW((void)guard.try_lock_for(1h), usage_error);
    EXPECT_THROW((void)guard.try_lock_until(time_point::max()), usage_error);
    EXPECT_FALSE(spawn([&] { return guard.try_lock(); }).get());
    guard.unlock();
    EXPECT_THROW(guard.unlock(), usage_error);
  });
}

TEST_P(TimedLocks, KeepTheirTimeThoughAStopIsRequested) {
  run_for_kind([]<class Lock> {
    Lock guard;
    std::unique_lock lock(guard);
    const auto attempt = [&](auto time) {
      return spawn([&guard, time] {
        const deadline_scope scope(0s);
        return guard.try_lock_for(time) && (guard.unlock(), true);
      });
    };
    auto impatient = attempt(2ms), patient = attempt(1h);
    impatient.request_stop();
    patient.request_stop();
    EXPECT_FALSE(impatient.get());
    lock.unlock();
    EXPECT_TRUE(patient.get());
  });
}

}  // namespace
