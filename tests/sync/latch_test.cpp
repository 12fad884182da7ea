#include "support/crowd.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/latch.hpp>

// What it has in common with others is in gates_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

[[maybe_unused]] constinit latch made_at_compile_time(1);  // compiles

class Latch : public WorkersTest {};
ULEXITE_TEST_WORKERS(Latch);

TEST_P(Latch, OpensAtZeroAndStaysOpen) {
  auto check = [] {
    latch gate(6);
    gate.count_down();
    gate.count_down(0);
    gate.count_down(4);
    EXPECT_FALSE(gate.try_wait());
    EXPECT_FALSE(gate.wait_for(0s));
    gate.count_down();
    EXPECT_TRUE(gate.try_wait());
    gate.wait();
    EXPECT_TRUE(gate.wait_for(0s));
    gate.count_down(0);
    const latch open(0);
    EXPECT_TRUE(open.try_wait());
    open.wait();
  };
  run(check);
  check();
}

TEST_P(Latch, MisuseIsAUsageErrorAndChangesNothing) {
  EXPECT_THROW(latch(-1), usage_error);
  latch gate(2);
  EXPECT_THROW(gate.count_down(-1), usage_error);
  EXPECT_THROW(gate.count_down(3), usage_error);
  EXPECT_THROW(gate.count_down(latch::max()), usage_error);
  EXPECT_THROW(gate.arrive_and_wait(3), usage_error);
  EXPECT_FALSE(gate.try_wait());
  gate.count_down(2);
  EXPECT_TRUE(gate.try_wait());
  EXPECT_THROW(gate.count_down(), usage_error);
  gate.wait();
}

TEST_P(Latch, FibersAndThreadsWaitForEachOther) {
  for (int round = 0; round < times(200); ++round) {
    latch gate(8);
    int written[8] = {};  // not atomic
    const auto work = [&](int me) {
      written[me] = 1;
      gate.arrive_and_wait();
      for (int each : written) EXPECT_EQ(each, 1);
    };
    crowd(rt(), 6, 2, work).join();
  }
}

TEST_P(Latch, ACancelledArriveAndWaitHasCountedDown) {
  latch gate(3);
  expect_stop_ends(rt(), [&] { gate.arrive_and_wait(); });
  expect_stop_forbids(rt(), [&] { gate.arrive_and_wait(); });
  EXPECT_FALSE(gate.try_wait());
  gate.arrive_and_wait();
}

}  // namespace
