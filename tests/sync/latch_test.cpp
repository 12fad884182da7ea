#include "support/waiting.hpp"

#include <ulexite/sync/latch.hpp>

#include <thread>

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
    std::vector<std::thread> threads;
    std::vector<join_handle<>> all;
    for (int i = 0; i < 6; ++i) all.push_back(rt().spawn([&, i] { work(i); }));
    for (int i = 6; i < 8; ++i) threads.emplace_back(work, i);
    for (auto& each : all) each.get();
    for (auto& each : threads) each.join();
  }
}

TEST_P(Latch, WaitsNoLongerThanAllowed) {
  auto check = [] {
    latch gate(1);
    const auto start = ulexite::steady_clock::now();
    EXPECT_FALSE(gate.wait_for(2ms));
    EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    EXPECT_FALSE(gate.wait_until(ulexite::steady_clock::now() - 1s));
    gate.count_down();
    EXPECT_TRUE(gate.wait_until(ulexite::steady_clock::time_point::max()));
  };
  run(check);
  check();
}

TEST_P(Latch, WaitIsACancellationPoint) {
  latch gate(1);
  expect_stop_ends(rt(), [&] { gate.wait(); });
  expect_stop_ends(rt(), [&] { gate.wait_for(1h); });
  gate.count_down();
  expect_stop_forbids(rt(), [&] { gate.wait(); });
}

TEST_P(Latch, ACancelledArriveAndWaitHasCountedDown) {
  latch gate(3);
  expect_stop_ends(rt(), [&] { gate.arrive_and_wait(); });
  expect_stop_forbids(rt(), [&] { gate.arrive_and_wait(); });
  EXPECT_FALSE(gate.try_wait());
  gate.arrive_and_wait();
}

TEST_P(Latch, MayBeDestroyedAsSoonAsTheWaitReturns) {
  run([] {
    for (int i = 0; i < times(5000); ++i) {
      auto gate = std::make_unique<latch>(2);
      spawn([g = gate.get()] { g->count_down(); }).detach();
      spawn([g = gate.get()] { g->count_down(); }).detach();
      if (i % 2 == 0) this_fiber::yield();
      if (i % 3 == 0) gate->wait_for(1us);
      gate->wait();
    }
  });
}

}  // namespace
