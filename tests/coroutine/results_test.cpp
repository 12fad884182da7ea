// Joins and futures in coroutines.

#include "ways.hpp"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoResults : public WaysTest {};
ULEXITE_TEST_WAYS(CoResults);

TEST_P(CoResults, OfFibersAreTakenByCoroutines) {
  EXPECT_EQ(finish([]() -> task<std::string> {
              auto text = spawn([] {
                this_fiber::sleep_for(1ms);
                return std::string(50, 'x');
              });
              auto ready = spawn([] { return std::make_unique<int>(5); });
              const auto five = co_await co_get(ready);
              EXPECT_EQ(*five, 5);
              EXPECT_FALSE(ready.joinable());
              co_return co_await co_get(text);
            }),
            std::string(50, 'x'));
}

TEST_P(CoResults, AreReferencesAndNothingToo) {
  int number = 3;
  EXPECT_EQ(&finish([&]() -> task<int&> {
    auto child = spawn([&]() -> int& { return number; });
    auto none = spawn([] {});
    co_await co_get(none);
    co_return co_await co_get(child);
  }),
            &number);
}

TEST_P(CoResults, OfATemporaryHandle) {
  EXPECT_EQ(finish([]() -> task<int> {
              int total = co_await co_get(spawn([] { return 1; }));
              total += co_await co_get(spawn([]() -> task<int> {
                co_await co_sleep_for(1ms);
                co_return 2;
              }));
              co_return total;
            }),
            3);
}

TEST_P(CoResults, AreExceptionsToo) {
  finish([]() -> task<> {
    const auto fail = []() -> task<int> {
      co_await co_yield_now();
      throw std::runtime_error("child");
    };
    auto child = spawn(fail);
    co_await co_join(child);
    EXPECT_TRUE(child.joinable());
    EXPECT_TRUE(child.done());
    int caught = 0;
    try {
      (void)co_await co_get(child);
    } catch (const std::runtime_error&) {
      ++caught;
    }
    try {
      (void)co_await co_get(spawn(fail));
    } catch (const std::runtime_error&) {
      ++caught;
    }
    EXPECT_EQ(caught, 2);
    bool refused = false;
    try {
      (void)co_await co_get(child);
    } catch (const usage_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
}

TEST_P(CoResults, OfAStoppedChildAreItsCancellation) {
  EXPECT_THROW(finish([]() -> task<int> {
                 auto child = spawn([]() -> task<int> {
                   co_await co_sleep_for(1h);
                   co_return 1;
                 });
                 co_await co_yield_now();
                 child.request_stop();
                 co_return co_await co_get(child);
               }),
               operation_cancelled);
}

TEST_P(CoResults, OfAPromiseWakeAllWhoWait) {
  promise<std::string> of;
  const shared_future<std::string> all = of.get_future().share();
  std::vector<join_handle<std::size_t>> waiters;
  for (int i = 0; i < 20; ++i)
    waiters.push_back(start([all]() -> task<std::size_t> {
      co_await co_wait(all);
      co_return all.get().size();
    }));
  std::thread outside([&] { EXPECT_EQ(await(co_get(all)), std::string(70, 'y')); });
  wait_until_all_wait(rt());
  of.set_value(std::string(70, 'y'));
  for (auto& each : waiters) EXPECT_EQ(each.get(), 70u);
  outside.join();
}

TEST_P(CoResults, OfABrokenPromise) {
  auto of = std::make_unique<promise<int>>();
  auto waits =
      start_until_it_waits([mine = of->get_future()]() mutable -> task<int> { co_return co_await co_get(mine); });
  of.reset();
  EXPECT_THROW(waits.get(), std::future_error);
}

// The fiber that is joined may be a coroutine that ends on any worker, and its record is freed at once.
TEST_P(CoResults, OfManyChildrenThatEndMeanwhile) {
  const int count = times(2000);
  EXPECT_EQ(finish([&]() -> task<int> {
              int total = 0;
              for (int i = 0; i < count; ++i) {
                auto child = spawn([i]() -> task<int> {
                  if (i % 3 == 0) co_await co_yield_now();
                  co_return 1;
                });
                if (i % 2) co_await co_yield_now();
                if (i % 5 == 0) co_await co_join(child);
                total += co_await co_get(child);
              }
              co_return total;
            }),
            count);
}

TEST_P(CoResults, SleepsLastAsLongAsTheySay) {
  finish([]() -> task<> {
    const auto begun = ulexite::steady_clock::now();
    co_await co_sleep_for(2ms);
    EXPECT_GE(ulexite::steady_clock::now() - begun, 2ms);
    co_await co_sleep_until(begun + 4ms);
    EXPECT_GE(ulexite::steady_clock::now() - begun, 4ms);
    co_await co_sleep_for(-1s);
    co_await co_sleep_until(begun);
  });
}

TEST_P(CoResults, ASleepIsEndedByAStopAndByADeadline) {
  auto sleeps = start_until_it_waits([]() -> task<> { co_await co_sleep_for(1h); });
  sleeps.request_stop();
  EXPECT_THROW(sleeps.get(), operation_cancelled);
  const auto late = []() -> task<> {
    const deadline_scope limit(100us);
    co_await co_sleep_until(ulexite::steady_clock::time_point::max());
  };
  EXPECT_THROW(finish(late), deadline_exceeded);
  auto spared = start_until_it_waits([]() -> task<> {
    const shield unheard;
    co_await co_sleep_for(20ms);
  });
  spared.request_stop();
  spared.get();
}

}  // namespace
