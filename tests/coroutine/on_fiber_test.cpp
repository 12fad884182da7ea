// Calls that block in a child fiber, while the task has no stack.

#include "ways.hpp"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoOnFiber : public WaysTest {};
ULEXITE_TEST_WAYS(CoOnFiber);

TEST_P(CoOnFiber, ResultsAreValuesReferencesAndNothing) {
  int number = 3;
  EXPECT_EQ(finish([&]() -> task<std::string> {
              auto give = [kept = std::make_unique<int>(5)]() mutable {
                this_fiber::sleep_for(1us);
                return std::move(kept);
              };
              const auto five = co_await on_fiber(std::move(give));
              EXPECT_EQ(*five, 5);
              EXPECT_EQ(&co_await on_fiber([&]() -> int& { return number; }), &number);
              co_await on_fiber([&] { ++number; });
              co_return co_await on_fiber([] { return std::string(50, 'x'); });
            }),
            std::string(50, 'x'));
  EXPECT_EQ(number, 4);
}

TEST_P(CoOnFiber, AnExceptionComesBackAndNothingElseIsStopped) {
  finish([]() -> task<> {
    auto neighbour = spawn([]() -> task<> { co_await co_sleep_for(1ms); });
    std::string what;
    try {
      co_await on_fiber([] {
        this_fiber::yield();
        throw std::runtime_error("from the child");
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "from the child");
    co_await co_get(neighbour);
  });
}

TEST_P(CoOnFiber, TheChildEndsBeforeTheTaskGoesOn) {
  for (const bool by_deadline : {false, true}) {
    std::atomic<int> alive{0};
    auto waits = start_until_it_waits([&]() -> task<> {
      const deadline_scope limit(by_deadline ? 20ms : 24h);
      const lives here(alive);
      try {
        co_await on_fiber([&] {
          const lives in_the_child(alive);
          try {
            this_fiber::sleep_for(1h);
          } catch (const operation_cancelled&) {
            const shield to_the_end;
            this_fiber::sleep_for(1ms);
            throw;
          }
        });
      } catch (const operation_cancelled&) {
        EXPECT_EQ(alive, 1);
        throw;
      }
    });
    if (!by_deadline) waits.request_stop();
    if (by_deadline) {
      EXPECT_THROW(waits.get(), deadline_exceeded);
    } else {
      EXPECT_THROW(waits.get(), operation_cancelled);
    }
    EXPECT_EQ(alive, 0);
  }
}

TEST_P(CoOnFiber, WhatWasDoneInSpiteOfAStopIsNotLost) {
  ulexite::event go;
  auto waits = start_until_it_waits([&]() -> task<int> {
    co_return co_await on_fiber([&] {
      const shield unheard;
      go.wait();
      return 7;
    });
  });
  waits.request_stop();
  wait_until_all_wait(rt());
  EXPECT_FALSE(waits.done());
  go.set();
  EXPECT_EQ(waits.get(), 7);
}

TEST_P(CoOnFiber, AStoppedTaskCallsNothing) {
  std::atomic<int> calls{0};
  ulexite::event go;
  auto waits = start_until_it_waits([&]() -> task<> {
    {
      const shield until_stopped;
      co_await co_wait(go);
    }
    co_await on_fiber([&] { ++calls; });
  });
  waits.request_stop();
  go.set();
  EXPECT_THROW(waits.get(), operation_cancelled);
  EXPECT_EQ(calls, 0);
}

TEST_P(CoOnFiber, OnAPlainThreadItIsAnOrdinaryCall) {
  const auto here = std::this_thread::get_id();
  EXPECT_EQ(await(on_fiber([] { return std::this_thread::get_id(); })), here);
}

TEST_P(CoOnFiber, StopsRaceWithTheEnd) {
  std::atomic<int> called{0}, returned{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < times(200); ++i) {
    all.push_back(start([&, i]() -> task<> {
      returned += co_await on_fiber([&, i] {
        ++called;
        if (i % 3 == 0) this_fiber::sleep_for(std::chrono::microseconds(i));
        return 1;
      });
    }));
    if (i % 2 == 0) all[static_cast<std::size_t>(i / 2)].request_stop();
  }
  for (auto& each : all) {
    try {
      each.get();
    } catch (const operation_cancelled&) {
    }
  }
  EXPECT_LE(returned, called);
  EXPECT_GT(returned, 0);
}

TEST_P(CoOnFiber, AStopAfterTheDeadlineReachesTheChild) {
  std::atomic<bool> late{false};
  auto waits = start([&]() -> task<> {
    const deadline_scope limit(1ms);
    co_await on_fiber([&] {
      EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
      late = true;
      while (!this_fiber::stop_requested()) this_fiber::yield();
    });
  });
  wait_until([&] { return late.load(); });
  waits.request_stop();
  waits.join();
}

TEST_P(CoOnFiber, TheShieldOfTheTaskIsThatOfTheChild) {
  ulexite::event go;
  std::atomic<bool> to_its_end{false};
  auto waits = start_until_it_waits([&]() -> task<> {
    const shield cleaning_up;
    co_await on_fiber([&] {
      go.wait();
      to_its_end = true;
    });
  });
  rt().request_stop();
  go.set();
  waits.join();
  EXPECT_TRUE(to_its_end);
}

TEST_P(CoOnFiber, ADeadlineWithinAShieldIsThatOfTheChild) {
  finish([]() -> task<> {
    const shield cleaning_up;
    const deadline_scope but_not_for_ever(1ms);
    co_await on_fiber([] { EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded); });
  });
}

TEST_P(CoOnFiber, TheFunctionGetsNoArgument) {
  finish([]() -> task<> {
    const auto count = [](auto&&... given) { return sizeof...(given); };
    EXPECT_EQ(co_await on_fiber(count), 0u);
    EXPECT_EQ(co_await co_blocking(count), 0u);
  });
}

}  // namespace
