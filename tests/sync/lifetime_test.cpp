// Objects that may be destroyed as soon as their last user is done, although calls of others are still returning.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/timed_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Lifetime : public WorkersTest {};
ULEXITE_TEST_WORKERS(Lifetime);

// Storage that overwrites its object at the end.
template <class T>
class burnt_earth {
 public:
  burnt_earth() { new (room_) T; }
  T& operator*() noexcept { return *std::launder(reinterpret_cast<T*>(room_)); }
  T* operator->() noexcept { return &**this; }
  void destroy() noexcept {
    std::destroy_at(&**this);
    std::memset(room_, 0xff, sizeof room_);
  }

 private:
  alignas(T) unsigned char room_[sizeof(T)];
};

// Counts its references under a mutex of its own, and goes with the last. Some wait with a time limit first: who gives
// up leaves the mutex marked, and its owner on the long way out.
struct shared_thing {
  timed_mutex guard;
  int references;
  std::atomic<int>* destroyed;

  shared_thing(int count, std::atomic<int>& to) : references(count), destroyed(&to) {}
  ~shared_thing() { ++*destroyed; }

  void release(int turn) {
    if (turn % 3 == 0 || !guard.try_lock_for(std::chrono::microseconds(turn % 3))) guard.lock();
    if (turn % 4 == 0) this_fiber::yield();  // so that others queue
    const bool last = --references == 0;
    guard.unlock();
    if (last) delete this;
  }
};

TEST_P(Lifetime, AMutexMayGoWithWhoeverUnlockedItLast) {
  constexpr int threads = 2, fibers = 8;
  const int count = times(2000);
  std::atomic<int> destroyed{0};
  std::vector<shared_thing*> things;
  for (int i = 0; i < count; ++i) things.push_back(new shared_thing(threads + fibers, destroyed));
  const auto release_all = [&](int me) {
    for (int i = 0; i < count; ++i) things[static_cast<std::size_t>(i)]->release(i + me);
  };
  std::vector<std::thread> on_threads;
  for (int i = 0; i < threads; ++i) on_threads.emplace_back(release_all, i);
  run([&] {
    task_group all;
    for (int i = 0; i < fibers; ++i) all.spawn([&, i] { release_all(i); });
    all.wait();
  });
  for (auto& each : on_threads) each.join();
  EXPECT_EQ(destroyed, count);
}

// A lock with an unlock that lasts until the test ends it, when others have the mutex already.
struct lingering_lock {
  mutex& guard;
  wait_group& until;
  void lock() { guard.lock(); }
  void unlock() {
    guard.unlock();
    until.wait();
  }
};

TEST_P(Lifetime, AConditionVariableMayGoWhileNotifiedWaitersStillReleaseTheirLock) {
  for (int round = 0; round < times(100); ++round)
    run([] {
      mutex guard;
      wait_group gone(1);
      task_group all;
      burnt_earth<condition_variable_any> condition;
      int waiting = 0;
      for (int i = 0; i < 3; ++i)
        all.spawn([&] {
          lingering_lock lock{guard, gone};
          lock.lock();
          ++waiting;
          condition->wait(lock);
          guard.unlock();
        });
      wait_until([&] {
        const std::lock_guard lock(guard);
        return waiting == 3;
      });
      condition->notify_all();
      condition.destroy();
      gone.done();
      all.wait();
    });
}

TEST_P(Lifetime, AConditionVariableMayGoAsSoonAsAllAreNotified) {
  for (int round = 0; round < times(500); ++round) {
    timed_mutex guard;
    burnt_earth<condition_variable_any> condition;
    int waiting = 0;
    bool go = false;
    const auto wait = [&](int i) {
      std::unique_lock lock(guard);
      ++waiting;
      const auto gone = [&] { return go; };
      if (i % 2 == 0) {
        condition->wait(lock, gone);
      } else {
        EXPECT_TRUE(condition->wait_for(lock, 1h, gone));
      }
    };
    std::vector<join_handle<>> all;
    for (int i = 0; i < 4; ++i) all.push_back(rt().spawn(wait, i));
    std::thread thread(wait, round);
    wait_until([&] {
      const std::lock_guard lock(guard);
      return waiting == 5;
    });
    {
      const std::lock_guard lock(guard);
      go = true;
    }
    condition->notify_all();
    condition.destroy();
    for (auto& each : all) each.get();
    thread.join();
  }
}

}  // namespace
