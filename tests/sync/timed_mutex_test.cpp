#include "support/crowd.hpp"
#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/base/random.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/timed_mutex.hpp>

#include <mutex>

// What it has in common with others is in locks_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

using TimedMutexQueue = RuntimeTest;  // with one worker the test decides who runs when
class TimedMutex : public WorkersTest {};
ULEXITE_TEST_WORKERS(TimedMutex);

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
      task_group all;
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
  std::atomic<int> patient_left{6};
  const int each = times(1000);
  const auto enter = [&](int i) {
    EXPECT_EQ(++inside, 1);
    ++count;
    if (i % 3 == 0) this_fiber::yield();
    --inside;
    guard.unlock();
  };
  const auto patient = [&] {
    for (int i = 0; i < each; ++i) {
      guard.lock();
      enter(i);
    }
    taken += each;
    --patient_left;
  };
  const auto impatient = [&](int me) {
    detail::random random(static_cast<std::uint64_t>(me) + 1);
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
  crowd all(rt(), 12, 1, impatient);
  all.add(4, 2, patient);
  all.join();
  EXPECT_EQ(count, taken);
  EXPECT_GE(count, 6L * each);
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
}

}  // namespace
