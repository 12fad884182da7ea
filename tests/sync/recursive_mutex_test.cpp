#include "support/crowd.hpp"
#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <thread>

// What it has in common with others is in locks_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

class RecursiveMutex : public WorkersTest {};
ULEXITE_TEST_WORKERS(RecursiveMutex);

TEST_P(RecursiveMutex, IsFreeAfterAsManyUnlocks) {
  const auto check = [] {
    recursive_mutex guard;
    const auto others_get_it = [&] {
      bool got = false;
      std::thread([&] {
        got = guard.try_lock();
        if (got) guard.unlock();
      }).join();
      return got;
    };
    for (int i = 0; i < 3; ++i) guard.lock();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(guard.try_lock());
    for (int i = 0; i < 5; ++i) {
      EXPECT_FALSE(others_get_it()) << i;
      guard.unlock();
    }
    EXPECT_TRUE(others_get_it());
    EXPECT_THROW(guard.unlock(), usage_error);
  };
  run(check);
  check();
}

TEST_P(RecursiveMutex, BelongsToOneFiberAtATime) {
  run([] {
    recursive_mutex guard;
    guard.lock();
    guard.lock();
    spawn([&] {
      EXPECT_FALSE(guard.try_lock());
      EXPECT_THROW(guard.unlock(), usage_error);
    }).join();
    std::atomic<bool> coming{false};
    auto other = spawn([&] {
      coming = true;
      const std::lock_guard lock(guard);
      EXPECT_TRUE(guard.try_lock());
      guard.unlock();
      return true;
    });
    wait_until([&] { return coming.load(); });
    wait_until_others_wait();
    guard.unlock();
    wait_until_others_wait();
    EXPECT_FALSE(other.done());
    EXPECT_TRUE(guard.try_lock()) << "the owner may, though another waits";
    guard.unlock();
    guard.unlock();
    EXPECT_TRUE(other.get());
  });
}

// It yields at every depth, and continues on another worker.
TEST_P(RecursiveMutex, ExcludesFibersAndThreadsAtAnyDepth) {
  recursive_mutex guard;
  long count = 0;
  int inside = 0;
  const std::function<void(int)> descend = [&](int depth) {
    const std::lock_guard lock(guard);
    ++count;
    EXPECT_EQ(inside, 0);
    if (depth == 0) {
      ++inside;
      this_fiber::yield();
      --inside;
    } else {
      if (depth % 2 == 0) this_fiber::yield();
      descend(depth - 1);
    }
  };
  const auto work = [&] {
    for (int i = 0; i < times(300); ++i) descend(i % 5);
  };
  crowd(rt(), 4, 2, work).join();
  long expected = 0;
  for (int i = 0; i < times(300); ++i) expected += 1 + i % 5;
  EXPECT_EQ(count, 6 * expected);
}

}  // namespace
