#include "support/runtime_fixture.hpp"

#include <ulexite/sync/wait_group.hpp>

#include <cstdint>
#include <memory>
#include <thread>

// What it has in common with others is in gates_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

class WaitGroup : public WorkersTest {};
ULEXITE_TEST_WORKERS(WaitGroup);

TEST_P(WaitGroup, WaitsForAllItCounts) {
  run([] {
    wait_group group;
    group.wait();
    wait_group counted(3);
    counted.add(2);
    for (int i = 0; i < 5; ++i) {
      EXPECT_FALSE(counted.wait_for(0s));
      spawn([&] { counted.done(); }).detach();
    }
    counted.wait();
    counted.add(5);
    counted.add(-5);
    counted.wait();
  });
}

TEST_P(WaitGroup, BelowZeroIsAUsageErrorAndChangesNothing) {
  run([] {
    wait_group group(1);
    EXPECT_THROW(group.add(-2), usage_error);
    group.done();
    EXPECT_THROW(group.done(), usage_error);
    EXPECT_THROW(group.add(-1), usage_error);
    group.wait();
    EXPECT_TRUE(group.wait_for(0s));
  });
}

TEST_P(WaitGroup, CanBeUsedAgain) {
  run([] {
    wait_group group;
    int sum = 0;  // not atomic: the waits order it
    for (int round = 0; round < times(1000); ++round) {
      group.add();
      spawn([&] {
        ++sum;
        group.done();
      }).detach();
      if (round % 3 == 0) group.wait_for(0s);
      group.wait();
      EXPECT_EQ(sum, round + 1);
    }
  });
}

TEST_P(WaitGroup, RefusesCountsThatItCannotHold) {
  constexpr std::ptrdiff_t most = wait_group::max();
  EXPECT_THROW(wait_group(std::size_t{1} << 40), usage_error);
  EXPECT_THROW(wait_group(SIZE_MAX), usage_error);
  wait_group group;
  EXPECT_THROW(group.add(most + 1), usage_error);
  group.add(most);
  EXPECT_THROW(group.add(), usage_error);
  EXPECT_EQ(group.count(), static_cast<std::size_t>(most));
  group.add(-most);
  group.wait();
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
