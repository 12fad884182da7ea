// The locks that a fiber holds are counted, and a fiber must not end with one.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/shared_mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/timed_mutex.hpp>

#include <mutex>
#include <shared_mutex>
#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class HeldLocks : public WorkersTest {};
ULEXITE_TEST_WORKERS(HeldLocks);

int locks_held() { return detail::this_agent().held_locks; }

TEST_P(HeldLocks, AreCounted) {
  run([] {
    mutex guard;
    recursive_mutex often;
    shared_mutex shared;
    condition_variable changed;
    std::unique_lock lock(guard);
    const std::scoped_lock twice(often, often);
    shared.lock_shared();
    EXPECT_EQ(locks_held(), 3);
    EXPECT_FALSE(guard.try_lock());
    EXPECT_FALSE(shared.try_lock());
    EXPECT_THROW(guard.lock(), usage_error);
    EXPECT_EQ(changed.wait_for(lock, 0s), std::cv_status::timeout);
    EXPECT_EQ(locks_held(), 3);
    auto waiter = spawn([&] {
      const std::lock_guard first(guard);
      const std::lock_guard second(shared);
      return locks_held();
    });
    this_fiber::yield();
    lock.unlock();
    EXPECT_FALSE(waiter.wait_for(1ms));
    shared.unlock_shared();
    EXPECT_EQ(locks_held(), 1);
    EXPECT_EQ(waiter.get(), 2);
  });
}

TEST_P(HeldLocks, WhatWasNotTakenInTimeDoesNotCount) {
  run([] {
    timed_mutex timed;
    shared_mutex shared;
    ASSERT_TRUE(timed.try_lock_for(30s));
    ASSERT_TRUE(shared.try_lock_for(30s));
    EXPECT_EQ(locks_held(), 2);
    auto late = spawn([&] { return timed.try_lock_for(1us) || shared.try_lock_shared_for(1us) ? -1 : locks_held(); });
    EXPECT_EQ(late.get(), 0);
    shared.unlock();
    timed.unlock();
    EXPECT_EQ(locks_held(), 0);
  });
}

// Many fibers. Some of them would get the block of the first.
template <class F>
void in_many_fibers(F function) {
  for (int i = 0; i < 200; ++i) spawn(function).get();
}

TEST_P(HeldLocks, AFiberThatEndsWithAMutexHasFailed) {
  run([] {
    mutex guard;
    auto careless = spawn([&] {
      guard.lock();
      return 1;
    });
    EXPECT_THROW(careless.get(), usage_error);
    in_many_fibers([&] {
      EXPECT_FALSE(guard.try_lock());
      EXPECT_THROW(guard.unlock(), usage_error);
    });
  });
}

TEST_P(HeldLocks, AFiberThatEndsWithASharedLockHasFailed) {
  run([] {
    shared_mutex alone, together;
    EXPECT_THROW(spawn([&] { alone.lock(); }).get(), usage_error);
    EXPECT_THROW(spawn([&] { together.lock_shared(); }).get(), usage_error);
    in_many_fibers([&] {
      EXPECT_THROW(alone.unlock(), usage_error);
      EXPECT_FALSE(together.try_lock());
    });
  });
}

TEST_P(HeldLocks, WhatAFiberThrewIsToldRatherThanWhatItHeld) {
  run([] {
    mutex guard;
    auto careless = spawn([&] {
      guard.lock();
      throw std::runtime_error("thrown with the mutex held");
    });
    EXPECT_THROW(careless.get(), std::runtime_error);
    in_many_fibers([&] { EXPECT_THROW(guard.unlock(), usage_error); });
  });
}

TEST_P(HeldLocks, AnEndWithALockIsReportedThoughNobodyJoins) {
  std::atomic<int> reports{0};
  auto& rt = make({.threads = GetParam(), .on_unhandled_exception = [&](const unhandled_exception& what) {
                     EXPECT_THROW(std::rethrow_exception(what.exception), usage_error);
                     ++reports;
                   }});
  mutex one, other;
  rt.run([&] {
    spawn([&] { one.lock(); }).detach();
    task_group group;
    group.spawn([&] { other.lock(); });
    group.wait();
  });
  wait_until([&] { return reports == 2; });
}

TEST_P(HeldLocks, AHandleMayOutliveTheRuntimeOfSuchAFiber) {
  mutex guard;
  auto& rt = make(GetParam());
  auto careless = rt.spawn([&] { guard.lock(); });
  end(rt, shutdown_mode::drain);
  EXPECT_THROW(careless.get(), usage_error);
}

struct locking_job : job {
  mutex guard;
  std::atomic<bool> ran{false};
};

TEST_P(HeldLocks, AJobThatHoldsOneDoesNotBecomeAFiber) {
  locking_job work;
  work.run = [](job* self) noexcept {
    auto& here = *static_cast<locking_job*>(self);
    here.guard.lock();
    EXPECT_THROW(become_fiber(), usage_error);
    here.guard.unlock();
    here.ran = true;
  };
  rt().schedule(work);
  wait_until([&] { return work.ran.load(); });
}

}  // namespace
