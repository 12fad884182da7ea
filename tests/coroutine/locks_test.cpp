// Locks, condition variables and what counts, shared by coroutines, fibers and plain threads: the tests of sync, a
// second time.

#include "ways.hpp"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoLocks : public WaysTest {
 protected:
  // Runs `body` so many times at once, and in a plain thread too.
  template <class F>
  void crowd_of(int count, F body) {
    std::vector<join_handle<>> all;
    for (int i = 0; i < count; ++i) all.push_back(start(body));
    std::thread outside([&] { await(body()); });
    for (auto& each : all) each.get();
    outside.join();
  }
};
ULEXITE_TEST_WAYS(CoLocks);

TEST_P(CoLocks, AMutexLetsOneInAtATime) {
  mutex guard;
  long number = 0;  // not atomic
  const int each = times(500);
  auto fiber = rt().spawn([&] {
    for (int i = 0; i < each; ++i) {
      const std::lock_guard lock(guard);
      const long seen = number;
      if (i % 16 == 0) this_fiber::yield();
      number = seen + 1;
    }
  });
  crowd_of(8, [&]() -> task<> {
    for (int i = 0; i < each; ++i) {
      const auto lock = co_await co_lock(guard);
      const long seen = number;
      if (i % 16 == 0) co_await co_yield_now();
      number = seen + 1;
    }
  });
  fiber.get();
  EXPECT_EQ(number, 10L * each);
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

TEST_P(CoLocks, AMutexBelongsToTheFiberWhereverItRuns) {
  mutex guard;
  finish([&]() -> task<> {
    auto lock = co_await co_lock(guard);
    for (int i = 0; i < 100; ++i) co_await co_yield_now();
    bool refused = false;
    try {
      (void)co_await co_lock(guard);
    } catch (const usage_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused) << "it would wait for itself";
    EXPECT_FALSE(spawn([&] { return guard.try_lock(); }).get());
    lock.unlock();
    lock.lock();
  });
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

TEST_P(CoLocks, AMutexIsHandedOverInTheOrderOfArrival) {
  mutex guard;
  std::vector<int> order;
  std::vector<join_handle<>> all;
  ulexite::event go;
  auto holder = start_until_it_waits([&]() -> task<> {
    const auto lock = co_await co_lock(guard);
    co_await co_wait(go);
  });
  for (int i = 0; i < 6; ++i)
    all.push_back(start_until_it_waits([&, i]() -> task<> {
      const auto lock = co_await co_lock(guard);
      order.push_back(i);
    }));
  go.set();
  holder.get();
  for (auto& each : all) each.get();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(CoLocks, WritersAreAloneAndReadersSeeNoneAtWork) {
  shared_mutex guard;
  long left = 0, right = 0;  // not atomic
  const int each = times(300);
  auto readers = start([&]() -> task<> {
    for (int i = 0; i < each; ++i) {
      const std::shared_lock<shared_mutex> lock = co_await co_lock_shared(guard);
      const long seen = left;
      if (i % 16 == 0) co_await co_yield_now();
      EXPECT_EQ(seen, right);
    }
  });
  crowd_of(6, [&]() -> task<> {
    for (int i = 0; i < each; ++i) {
      {
        const std::unique_lock<shared_mutex> lock = co_await co_lock(guard);
        ++left;
        if (i % 16 == 0) co_await co_yield_now();
        ++right;
      }
      const auto lock = co_await co_lock_shared(guard);
      EXPECT_EQ(left, right);
    }
  });
  readers.get();
  EXPECT_EQ(left, 7L * each);
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

TEST_P(CoLocks, ReadersHoldASharedMutexTogether) {
  shared_mutex guard;
  std::atomic<int> inside{0};
  crowd_of(5, [&]() -> task<> {
    const auto lock = co_await co_lock_shared(guard);
    ++inside;
    while (inside < 6) co_await co_yield_now();
  });
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

TEST_P(CoLocks, MisuseOfASharedMutexIsAUsageError) {
  shared_mutex guard;
  EXPECT_THROW(finish([&]() -> task<> {
                 const auto lock = co_await co_lock(guard);
                 const auto again = co_await co_lock(guard);
               }),
               usage_error);
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

TEST_P(CoLocks, AConditionVariableCarriesEachNotification) {
  mutex guard;
  condition_variable filled, emptied;
  std::vector<int> box;  // at most 4
  const int each = times(300);
  std::atomic<int> total{0};
  const auto put = [&]() -> task<> {
    for (int i = 0; i < each; ++i) {
      auto lock = co_await co_lock(guard);
      while (box.size() == 4) co_await co_wait(emptied, lock);
      box.push_back(1);
      filled.notify_one();
    }
  };
  const auto take = [&]() -> task<> {
    for (int i = 0; i < each; ++i) {
      auto lock = co_await co_lock(guard);
      co_await co_wait(filled, lock, [&] { return !box.empty(); });
      total += box.back();
      box.pop_back();
      emptied.notify_one();
    }
  };
  std::vector<join_handle<>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(start(put));
    all.push_back(start(take));
  }
  std::thread puts([&] { await(put()); }), takes([&] { await(take()); });
  for (auto& one : all) one.get();
  puts.join();
  takes.join();
  EXPECT_EQ(total, 5 * each);
}

TEST_P(CoLocks, NotifyAllWakesAllAndEachHasTheMutex) {
  mutex guard;
  condition_variable changed;
  bool go = false;
  int passed = 0;  // under the mutex
  std::vector<join_handle<>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(start([&]() -> task<> {
      auto lock = co_await co_lock(guard);
      co_await co_wait(changed, lock, [&] { return go; });
      const int seen = passed;
      co_await co_yield_now();
      passed = seen + 1;
    }));
  wait_until_all_wait(rt());
  {
    const std::lock_guard lock(guard);
    go = true;
  }
  changed.notify_all();
  for (auto& each : all) each.get();
  EXPECT_EQ(passed, 20);
}

TEST_P(CoLocks, AConditionVariableTimesOutWithTheMutexHeld) {
  mutex guard;
  condition_variable changed;
  finish([&]() -> task<> {
    auto lock = co_await co_lock(guard);
    const auto begun = ulexite::steady_clock::now();
    EXPECT_EQ(co_await co_wait_for(changed, lock, 1ms), std::cv_status::timeout);
    EXPECT_GE(ulexite::steady_clock::now() - begun, 1ms);
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_EQ(co_await co_wait_until(changed, lock, begun), std::cv_status::timeout);
    const deadline_scope limit(100us);
    bool ended = false;
    try {
      (void)co_await co_wait_for(changed, lock, 1h);
    } catch (const deadline_exceeded&) {
      ended = true;
    }
    EXPECT_TRUE(ended && lock.owns_lock());
  });
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

TEST_P(CoLocks, WaitingWithoutTheMutexIsAUsageError) {
  mutex guard;
  condition_variable changed;
  EXPECT_THROW(finish([&]() -> task<> {
                 std::unique_lock lock(guard, std::defer_lock);
                 co_await co_wait(changed, lock);
               }),
               usage_error);
}

// Nobody is left behind by a notification that reached one whose time was over.
TEST_P(CoLocks, TimeOutsRaceWithNotifications) {
  mutex guard;
  condition_variable changed;
  int tokens = 0;
  const int each = times(300);
  const auto take = [&]() -> task<> {
    for (int i = 0; i < each; ++i) {
      auto lock = co_await co_lock(guard);
      while (tokens == 0) (void)co_await co_wait_for(changed, lock, i % 2 ? 1us : 50us);
      --tokens;
    }
  };
  std::vector<join_handle<>> all;
  for (int i = 0; i < 4; ++i) all.push_back(start(take));
  for (int i = 0; i < 4 * each; ++i) {
    const std::lock_guard lock(guard);
    ++tokens;
    changed.notify_one();
  }
  for (auto& one : all) one.get();
  EXPECT_EQ(tokens, 0);
}

TEST_P(CoLocks, ASemaphoreLetsInAsManyAsThereArePermits) {
  counting_semaphore<> permits(3);
  std::atomic<int> inside{0}, most{0};
  crowd_of(10, [&]() -> task<> {
    for (int i = 0; i < times(100); ++i) {
      if (i % 2) {
        co_await co_acquire(permits);
      } else {
        EXPECT_TRUE(co_await co_try_acquire_for(permits, 1h));
      }
      const int now = ++inside;
      if (now > most) most = now;
      co_await co_yield_now();
      --inside;
      permits.release();
    }
  });
  EXPECT_LE(most, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
}

TEST_P(CoLocks, TimeOutsAndStopsOfASemaphoreLoseNoPermit) {
  counting_semaphore<> permits(0);
  std::atomic<int> taken{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 40; ++i)
    all.push_back(start([&, i]() -> task<> {
      if (i % 2) {
        taken += co_await co_try_acquire_for(permits, std::chrono::microseconds(10 * i));
      } else {
        co_await co_acquire(permits);
        ++taken;
      }
    }));
  for (std::size_t i = 0; i < all.size(); ++i) {
    permits.release();
    if (i % 4 == 0) all[i].request_stop();
  }
  for (auto& each : all) {
    try {
      each.get();
    } catch (const operation_cancelled&) {
    }
  }
  int left = 0;
  while (permits.try_acquire()) ++left;
  EXPECT_EQ(taken + left, 40);
}

TEST_P(CoLocks, NobodyLeavesAPhaseOfABarrierBeforeAllHaveArrived) {
  std::atomic<int> arrived{0}, phases{0};
  const auto count = [&]() noexcept { ++phases; };
  barrier<decltype(count)> meet(5, count);
  crowd_of(4, [&]() -> task<> {
    for (int i = 1; i <= times(200); ++i) {
      ++arrived;
      co_await co_arrive_and_wait(meet);
      EXPECT_GE(arrived, 5 * i);
      EXPECT_GE(phases, i);
    }
  });
  EXPECT_EQ(phases, times(200));
}

TEST_P(CoLocks, ALatchOpensForAll) {
  latch start_line(6);
  std::atomic<int> arrived{0};
  crowd_of(5, [&]() -> task<> {
    ++arrived;
    co_await co_arrive_and_wait(start_line);
    EXPECT_EQ(arrived, 6);
    co_await co_wait(start_line);
  });
}

TEST_P(CoLocks, AnAutoResetEventWakesOneForEachSet) {
  auto_reset_event bell;
  std::atomic<int> woken{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(start_until_it_waits([&]() -> task<> {
      co_await co_wait(bell);
      ++woken;
    }));
  for (int i = 1; i <= 10; ++i) {
    bell.set();
    wait_until([&] { return woken == i; });
    wait_until_all_wait(rt());
    EXPECT_EQ(woken, i);
  }
  for (auto& each : all) each.get();
}

// The memory is freed as soon as the wait returns: what opened the gate must not touch it after that.
TEST_P(CoLocks, AGateMayBeDestroyedAsSoonAsTheWaitReturns) {
  finish([]() -> task<> {
    for (int i = 0; i < times(1000); ++i) {
      auto gate = std::make_unique<ulexite::event>();
      spawn([g = gate.get()]() -> task<> {
        g->set();
        co_return;
      }).detach();
      if (i % 2 == 0) co_await co_yield_now();
      if (i % 3 == 0) {
        while (!co_await co_wait_for(*gate, 1us)) {
        }
      } else {
        co_await co_wait(*gate);
      }
    }
  });
}

}  // namespace
