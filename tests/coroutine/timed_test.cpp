// Waits that end by their time: for groups, latches, joins and futures.

#include "ways.hpp"

#include <stdexcept>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoTimed : public WaysTest {};
ULEXITE_TEST_WAYS(CoTimed);

TEST_P(CoTimed, WaitsEndByTheirTimeAndTakeNothing) {
  promise<int> of;
  latch gate(1);
  ulexite::event go;
  finish([&]() -> task<> {
    auto single = of.get_future();
    auto child = spawn([&]() -> task<int> {
      co_await co_wait(go);
      co_return 2;
    });
    const auto passed = ulexite::steady_clock::now();
    EXPECT_EQ(co_await co_wait_for(single, 1ms), std::future_status::timeout);
    EXPECT_GE(ulexite::steady_clock::now() - passed, 1ms);
    EXPECT_EQ(co_await co_wait_until(single, passed), std::future_status::timeout);
    EXPECT_FALSE(co_await co_wait_for(child, 1us));
    EXPECT_FALSE(co_await co_wait_until(child, passed));
    EXPECT_FALSE(co_await co_wait_for(gate, 1us));
    EXPECT_FALSE(co_await co_wait_until(gate, passed));
    of.set_value(1);
    gate.count_down();
    go.set();
    EXPECT_EQ(co_await co_wait_until(single, passed), std::future_status::ready);
    EXPECT_EQ(single.get(), 1);
    EXPECT_TRUE(co_await co_wait_for(child, 1h));
    EXPECT_EQ(child.get(), 2);
    EXPECT_TRUE(co_await co_wait_until(gate, passed));
  });
}

TEST_P(CoTimed, AGroupIsWaitedForAgain) {
  ulexite::event go;
  std::atomic<int> ended{0};
  finish([&]() -> task<> {
    task_group group;
    for (int i = 0; i < 5; ++i)
      group.spawn([&]() -> task<> {
        co_await co_wait(go);
        ++ended;
      });
    EXPECT_FALSE(co_await co_wait_for(group, 1ms));
    EXPECT_FALSE(co_await co_wait_until(group, ulexite::steady_clock::now()));
    EXPECT_EQ(ended, 0);
    go.set();
    EXPECT_TRUE(co_await co_wait_for(group, 1h));
    EXPECT_EQ(ended, 5);
    co_await co_wait(group);
  });
}

TEST_P(CoTimed, AGroupThrowsItsFailure) {
  EXPECT_THROW(finish([]() -> task<> {
                 task_group group;
                 group.spawn([]() -> task<> {
                   co_await co_yield_now();
                   throw std::runtime_error("child");
                 });
                 (void)co_await co_wait_for(group, 1h);
               }),
               std::runtime_error);
}

TEST_P(CoTimed, AStopOrADeadlineEndsTheChildrenToo) {
  for (const bool by_deadline : {false, true}) {
    std::atomic<int> alive{0};
    auto waits = start_until_it_waits([&]() -> task<> {
      task_group group;
      for (int i = 0; i < 5; ++i)
        group.spawn([&]() -> task<> {
          const lives here(alive);
          co_await co_sleep_for(1h);
        });
      const deadline_scope limit(by_deadline ? 1ms : 24h);
      (void)co_await co_wait_for(group, 1h);
    });
    if (by_deadline) {
      EXPECT_THROW(waits.get(), deadline_exceeded);
    } else {
      waits.request_stop();
      EXPECT_THROW(waits.get(), operation_cancelled);
    }
    EXPECT_EQ(alive, 0);
  }
}

TEST_P(CoTimed, AJoinOrAFutureIsNoCancellationPoint) {
  promise<int> of;
  auto waits = start_until_it_waits([&]() -> task<> {
    auto single = of.get_future();
    auto child = spawn([&]() -> task<> { co_await co_wait(single); });
    EXPECT_TRUE(co_await co_wait_for(child, 1h));
    EXPECT_EQ(co_await co_wait_for(single, 1h), std::future_status::ready);
  });
  waits.request_stop();
  wait_until_all_wait(rt());
  EXPECT_FALSE(waits.done());
  of.set_value(1);
  waits.get();
}

TEST_P(CoTimed, AHandleOrAFutureWithoutStateIsRefused) {
  EXPECT_THROW(finish([]() -> task<> {
                 join_handle<> none;
                 (void)co_await co_wait_for(none, 1h);
               }),
               usage_error);
  EXPECT_THROW(finish([]() -> task<> {
                 future<int> none;
                 (void)co_await co_wait_for(none, 1h);
               }),
               std::future_error);
}

}  // namespace
