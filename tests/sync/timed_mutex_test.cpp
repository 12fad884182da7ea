#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/base/random.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/timed_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <limits>
#include <mutex>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using time_point = ulexite::steady_clock::time_point;

constexpr double infinity = std::numeric_limits<double>::infinity();

using TimedMutexQueue = RuntimeTest;  // with one worker the test decides who runs when
class TimedMutex : public WorkersTest {};
ULEXITE_TEST_WORKERS(TimedMutex);

TEST_P(TimedMutex, IsTakenWhileFreeWhateverTheTime) {
  const auto check = [] {
    timed_mutex guard;
    const auto take = [&](auto attempt) {
      EXPECT_TRUE(attempt());
      EXPECT_FALSE(guard.try_lock());
      guard.unlock();
    };
    take([&] { return guard.try_lock_for(0s); });
    take([&] { return guard.try_lock_for(-1h); });
    take([&] { return guard.try_lock_for(std::chrono::hours::max()); });
    take([&] { return guard.try_lock_for(std::chrono::hours::min()); });
    take([&] { return guard.try_lock_for(std::chrono::duration<double>(infinity)); });
    take([&] { return guard.try_lock_until(time_point::min()); });
    take([&] { return guard.try_lock_until(time_point::max()); });
  };
  run(check);
  check();
}

TEST_P(TimedMutex, GivesUpWhenTheTimeIsOver) {
  timed_mutex guard;
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
}

TEST_P(TimedMutex, IsTakenWhenItComesFreeInTime) {
  run([] {
    timed_mutex guard;
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

TEST_P(TimedMutex, AskedForByItsOwnerIsAUsageError) {
  run([] {
    timed_mutex guard;
    guard.lock();
    EXPECT_THROW(guard.lock(), usage_error);
    EXPECT_THROW((void)guard.try_lock_for(0s), usage_error);
    EXPECT_THROW((void)guard.try_lock_for(1h), usage_error);
    EXPECT_THROW((void)guard.try_lock_until(time_point::max()), usage_error);
    EXPECT_FALSE(guard.try_lock());
    spawn([&] { EXPECT_THROW(guard.unlock(), usage_error); }).join();
    EXPECT_FALSE(spawn([&] { return guard.try_lock(); }).get());
    guard.unlock();
    EXPECT_THROW(guard.unlock(), usage_error);
  });
}

TEST_P(TimedMutex, IsNoCancellationPoint) {
  run([] {
    timed_mutex guard;
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

// The waiters before and behind a timed-out waiter keep their order, and its frame may be destroyed.
TEST_F(TimedMutexQueue, IsLeftWithoutATrace) {
  make(1).run([] {
    timed_mutex guard;
    guard.lock();
    std::vector<int> order;
    std::vector<join_handle<>> patient, impatient;
    for (int i = 0; i < 5; ++i) {
      patient.push_back(spawn([&, i] {
        const std::lock_guard lock(guard);
        order.push_back(i);
      }));
      impatient.push_back(spawn([&] { EXPECT_FALSE(guard.try_lock_for(100us)); }));
      for (int k = 0; k < 4; ++k) this_fiber::yield();
    }
    for (auto& each : impatient) each.get();
    guard.unlock();
    for (auto& each : patient) each.join();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
  });
}

// The only ones who wait give up; the mutex is free for others all the same.
TEST_P(TimedMutex, IsFreeWhenAllWhoWaitedGaveUp) {
  run([] {
    timed_mutex guard;
    for (int i = 0; i < times(30); ++i) {
      guard.lock();
      wait_group all;
      for (int k = 0; k < 4; ++k) all.spawn([&] { EXPECT_FALSE(guard.try_lock_for(20us)); });
      all.wait();
      guard.unlock();
      EXPECT_TRUE(guard.try_lock());
      guard.unlock();
    }
  });
}

// Time-outs about as long as the mutex is held. A wake-up that one took with it would leave the patient ones behind.
TEST_P(TimedMutex, TimeOutsRaceWithUnlocks) {
  timed_mutex guard;
  long count = 0;
  int inside = 0;
  std::atomic<long> taken{0};
  std::atomic<int> patient_left{0};
  const auto enter = [&](int i) {
    EXPECT_EQ(++inside, 1);
    ++count;
    if (i % 3 == 0) this_fiber::yield();
    --inside;
    guard.unlock();
  };
  const auto patient = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      guard.lock();
      enter(i);
    }
    taken += rounds;
    --patient_left;
  };
  const auto impatient = [&](std::uint64_t seed) {
    detail::random random(seed);
    long mine = 0;
    for (int i = 0; patient_left > 0; ++i) {
      if (guard.try_lock_for(std::chrono::microseconds(random.below(40)))) {
        ++mine;
        enter(i);
      } else {
        this_fiber::yield();
      }
    }
    taken += mine;
  };
  const int each = times(1000);
  patient_left = 6;
  std::vector<std::thread> threads;
  std::vector<join_handle<>> all;
  for (std::uint64_t i = 0; i < 12; ++i) all.push_back(rt().spawn(impatient, i + 1));
  for (int i = 0; i < 4; ++i) all.push_back(rt().spawn(patient, each));
  threads.emplace_back(impatient, 100);
  for (int i = 0; i < 2; ++i) threads.emplace_back(patient, each);
  for (auto& fiber : all) fiber.join();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, taken);
  EXPECT_GE(count, 6L * each);
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

}  // namespace
