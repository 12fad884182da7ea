// Counts that do not add up.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class WaitGroupMisuse : public WorkersTest {};
ULEXITE_TEST_WORKERS(WaitGroupMisuse);

TEST_P(WaitGroupMisuse, ADoneTooManyIsRefusedWhileAFiberRuns) {
  run([] {
    event go;
    wait_group group;
    group.spawn([&] { go.wait(); });
    EXPECT_THROW(group.done(), usage_error);
    EXPECT_EQ(group.count(), 1u);
    EXPECT_FALSE(group.wait_for(0s));
    group.add();
    group.done();
    EXPECT_THROW(group.done(), usage_error);
    go.set();
    group.wait();
  });
}

TEST_P(WaitGroupMisuse, TheDestructorWaitsForFibersOnly) {
  run([] {
    bool ended = false;  // not atomic: the destructor orders it
    {
      wait_group group;
      group.add(2);
      group.spawn([&] {
        for (int i = 0; i < 100; ++i) this_fiber::yield();
        EXPECT_NO_THROW(group.done()) << "its share may have been given up";
        ended = true;
      });
    }
    EXPECT_TRUE(ended);
  });
}

// Both find a count of one, with the mark of a waiter. A race: not every round meets the case.
TEST(WaitGroupRace, OneOfTwoDonesIsRefused) {
  const int rounds = times(1000);
  std::unique_ptr<wait_group> group;
  std::atomic<int> ready{0}, ended{0}, refused{0};
  const auto meet = [](std::atomic<int>& arrived, int all) {
    ++arrived;
    for (int i = 0; arrived < all; ++i)
      if (i > 1000) std::this_thread::yield();
  };
  const auto finish = [&](int round) {
    meet(ready, 2 * round);
    try {
      group->done();
    } catch (const usage_error&) {
      ++refused;
    }
    meet(ended, 2 * round);
  };
  group = std::make_unique<wait_group>(1);
  EXPECT_FALSE(group->wait_for(0s));
  std::thread other([&] {
    for (int i = 1; i <= rounds; ++i) finish(i);
  });
  for (int i = 1; i <= rounds; ++i) {
    finish(i);
    EXPECT_EQ(group->count(), 0u);
    group->add();  // the mark of the waiter stays
  }
  other.join();
  EXPECT_EQ(refused, rounds);
}

}  // namespace
