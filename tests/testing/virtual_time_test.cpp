// Time in runs, which passes only when nothing can run.

#include <ulexite.hpp>
#include <ulexite/testing/explore.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
namespace ut = ulexite::testing;
using ut::expect;
using ut::find_failure;

TEST(VirtualTime, AnHourOfSleepsTakesNoTime) {
  const auto begin = std::chrono::steady_clock::now();
  ut::run_with_virtual_time([] {
    const auto start = steady_clock::now();
    for (int i = 0; i < 60; ++i) this_fiber::sleep_for(1min);
    EXPECT_EQ(steady_clock::now() - start, 1h);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1min);
}

TEST(VirtualTime, TimersFireInTheirOrderAndAtTheirTime) {
  ut::run_with_virtual_time([] {
    const auto start = steady_clock::now();
    std::vector<int> order;
    task_group all;
    for (const int ms : {30, 10, 20})
      all.spawn([&, ms] {
        this_fiber::sleep_for(std::chrono::milliseconds(ms));
        EXPECT_EQ(steady_clock::now() - start, std::chrono::milliseconds(ms));
        order.push_back(ms);
      });
    all.wait();
    EXPECT_EQ(order, (std::vector{10, 20, 30}));
    channel<int> ch;
    int value = 0;
    EXPECT_EQ(ch.receive_for(value, 5s), channel_status::timeout);
    EXPECT_EQ(steady_clock::now() - start, 5030ms);
    EXPECT_THROW(timeout(2s, [&] { static_cast<void>(ch.receive()); }), deadline_exceeded);
    EXPECT_EQ(steady_clock::now() - start, 7030ms);
    this_fiber::sleep_until(std::chrono::steady_clock::now() - 1s);  // a point of real time, which is over
    EXPECT_EQ(steady_clock::now() - start, 7030ms);
  });
}

TEST(VirtualTime, AFailureIsThrown) {
  EXPECT_THROW(ut::run_with_virtual_time([] { event().wait(); }), ut::schedule_failed);
}

// The answer comes as the time limit is over: only a slow machine shows it.
TEST(VirtualTime, OnASlowMachineTimersFireWhileFibersCanRun) {
  const auto body = [] {
    event answered;
    bool late = false;
    auto worker = spawn([&] {
      this_fiber::sleep_for(1ms);
      static_cast<void>(answered.is_set());
      answered.set();
    });
    late = !answered.wait_for(2ms);
    worker.get();
    expect(!late, "an answer in time");
  };
  EXPECT_FALSE(find_failure({.schedules = 500, .slowness = 0ns}, body).failure);
  EXPECT_TRUE(find_failure({.schedules = 500, .slowness = 5ms}, body).failure);
  EXPECT_FALSE(find_failure({.schedules = 500, .slowness = 100us}, body).failure);
}

}  // namespace
