#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/mutex.hpp>

#include <mutex>

// What it has in common with others is in condition_variables_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

class ConditionVariable : public WorkersTest {};
ULEXITE_TEST_WORKERS(ConditionVariable);

TEST_P(ConditionVariable, WaitWithoutHoldingIsAUsageError) {
  run([] {
    mutex guard;
    condition_variable condition;
    std::unique_lock lock(guard, std::defer_lock);
    EXPECT_THROW(condition.wait(lock), usage_error);
    EXPECT_FALSE(lock.owns_lock());
    lock.lock();
    spawn([&] { EXPECT_THROW(condition.wait(lock), usage_error); }).join();
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(guard.try_lock());
  });
}

TEST_P(ConditionVariable, WaitingWithTwoMutexesIsAUsageError) {
  mutex one, other;
  condition_variable changed;
  auto waiter = spawn_until_it_waits(rt(), [&] {
    std::unique_lock lock(one);
    changed.wait(lock);
  });
  std::unique_lock lock(other);
  EXPECT_THROW(changed.wait(lock), usage_error);
  EXPECT_THROW(changed.wait_for(lock, 0s), usage_error);
  EXPECT_TRUE(lock.owns_lock());
  changed.notify_all();
  waiter.get();
  EXPECT_EQ(changed.wait_for(lock, 0s), std::cv_status::timeout);
}

}  // namespace
