#include "support/crowd.hpp"
#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/timed_mutex.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

// What it has in common with others is in locks_test.cpp.
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
    task_group all;
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
  crowd(rt(), 3, 3, work).join();
  EXPECT_EQ(count, 6L * times(5000));
}

TEST_P(Mutex, BelongsToTheFiberWhereverItRuns) {
  run([] {
    mutex guard;
    std::atomic<bool> stop{false};
    task_group others;
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
    task_group all;
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

// The holder takes it again immediately, for ever; the waiter still gets it.
TEST_P(Mutex, AWaiterIsNotPassedOverForEver) {
  run([] {
    mutex guard;
    std::atomic<bool> got{false};
    task_group greedy;
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

// A waiter gets it when the owner releases it, and not before.
TEST_P(Mutex, AForeignUnlockWakesNobody) {
  run([] {
    mutex guard;
    std::atomic<bool> coming{false}, got{false};
    guard.lock();
    auto waiter = spawn([&] {
      coming = true;
      const std::lock_guard lock(guard);
      got = true;
    });
    wait_until([&] { return coming.load(); });
    for (int i = 0; i < 50; ++i) {
      spawn([&] { EXPECT_THROW(guard.unlock(), usage_error); }).join();
      EXPECT_FALSE(got);
    }
    guard.unlock();
    waiter.join();
    EXPECT_TRUE(got);
  });
}

TEST_P(Mutex, WorksWithUniqueLock) {
  run([] {
    mutex one, two;
    std::unique_lock deferred(one, std::defer_lock);
    EXPECT_FALSE(deferred.owns_lock());
    EXPECT_TRUE(deferred.try_lock());
    EXPECT_THROW(deferred.lock(), std::system_error);
    EXPECT_FALSE(std::unique_lock(one, std::try_to_lock).owns_lock());
    std::unique_lock other(two, std::try_to_lock);
    EXPECT_TRUE(other.owns_lock());
    swap(deferred, other);
    EXPECT_EQ(deferred.mutex(), &two);
    deferred.unlock();
    EXPECT_TRUE(spawn([&] {
                  const std::unique_lock lock(two, std::try_to_lock);
                  return lock.owns_lock();
                }).get());
    std::unique_lock adopted(*other.release(), std::adopt_lock);
    const std::unique_lock moved(std::move(adopted));
    EXPECT_TRUE(moved.owns_lock());
    EXPECT_FALSE(spawn([&] { return one.try_lock(); }).get());
  });
}

// Each takes the three in an order of its own, some fibers and some threads.
TEST_P(Mutex, StdLockTakesSeveralKindsWithoutDeadlock) {
  mutex one;
  timed_mutex two;
  recursive_mutex three;
  long count = 0;
  const auto work = [&](int i) {
    for (int k = 0; k < times(500); ++k) {
      const int order = (i + k) % 3;
      order == 0 ? std::lock(one, two, three) : order == 1 ? std::lock(three, one, two) : std::lock(two, three, one);
      const std::scoped_lock held(std::adopt_lock, one, two, three);
      if (++count % 16 == 0) this_fiber::yield();
    }
  };
  crowd(rt(), 4, 2, work).join();
  EXPECT_EQ(count, 6L * times(500));
}

// Fibers may hold the mutex, but only threads may wait for a condition variable of std's.
TEST_P(Mutex, WorksWithStdConditionVariableAnyOnThreads) {
  mutex guard;
  std::condition_variable_any condition;
  int tokens = 0, taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      std::unique_lock lock(guard);
      for (int k = 0; k < times(500); ++k, --tokens, ++taken) condition.wait(lock, [&] { return tokens > 0; });
    });
  run([&] {
    for (int i = 0; i < 3 * times(500); ++i) {
      {
        const std::lock_guard lock(guard);
        ++tokens;
      }
      condition.notify_one();
      if (i % 8 == 0) this_fiber::yield();
    }
  });
  for (auto& each : threads) each.join();
  EXPECT_EQ(taken, 3 * times(500));
  EXPECT_EQ(tokens, 0);
}

// With one worker the test decides who runs when.
class MutexQueue : public RuntimeTest {
 protected:
  template <class F>
  void run(F&& test) {
    make(1).run(std::forward<F>(test));
  }
  // All others run until they have nothing to do, unless they yield.
  static void settle() {
    for (int i = 0; i < 4; ++i) this_fiber::yield();
  }
};

TEST_F(MutexQueue, IsServedInTheOrderOfArrival) {
  run([] {
    mutex guard;
    guard.lock();
    std::vector<int> order;
    task_group all;
    for (int i = 0; i < 10; ++i) {
      all.spawn([&, i] {
        const std::lock_guard lock(guard);
        order.push_back(i);
      });
      settle();
    }
    guard.unlock();
    all.wait();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  });
}

TEST_F(MutexQueue, LetsAWaiterBePassedOverThirtyTimesAtMost) {
  run([] {
    mutex guard;
    guard.lock();
    const auto start = ulexite::steady_clock::now();
    auto waiter = spawn([&] { const std::lock_guard lock(guard); });
    settle();
    int passes = 0;
    for (guard.unlock(); passes <= 30 && guard.try_lock(); guard.unlock()) {
      ++passes;
      settle();  // the waiter wakes, and finds it taken
    }
    EXPECT_LE(passes, 30);
    // Nor less often, unless it had waited too long.
    if (ulexite::steady_clock::now() - start < 1ms) EXPECT_EQ(passes, 30);
    EXPECT_FALSE(waiter.done()) << "the mutex is its own before it has run";
    EXPECT_THROW(guard.unlock(), usage_error);
    waiter.join();
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
  });
}

TEST_F(MutexQueue, HandsOverToOneThatHasWaitedForAMillisecond) {
  run([] {
    mutex guard;
    guard.lock();
    auto waiter = spawn([&] { const std::lock_guard lock(guard); });
    settle();
    const auto start = ulexite::steady_clock::now();
    hog_until([&] { return ulexite::steady_clock::now() - start > 1ms; });
    guard.unlock();
    if (guard.try_lock()) {
      ADD_FAILURE() << "passed over";
      guard.unlock();
    }
    waiter.join();
  });
}

TEST_F(MutexQueue, KeepsThePlaceOfOneThatWasPassedOver) {
  run([] {
    mutex guard;
    guard.lock();
    std::vector<int> order;
    task_group all;
    for (int i = 0; i < 3; ++i) {
      all.spawn([&, i] {
        const std::lock_guard lock(guard);
        order.push_back(i);
      });
      settle();
    }
    guard.unlock();
    for (int i = 0; i < 5 && guard.try_lock(); ++i) {  // unless it has waited for too long
      settle();
      guard.unlock();
    }
    all.wait();
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
  });
}

}  // namespace
