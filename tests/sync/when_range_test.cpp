#include "support/cancellation.hpp"
#include "support/waiting.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/when.hpp>

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class WhenRange : public WorkersTest {};
ULEXITE_TEST_WORKERS(WhenRange);

TEST_P(WhenRange, AllOfManyHandlesInAnyContainer) {
  run([] {
    std::list<join_handle<std::unique_ptr<int>>> handles;
    for (int i = 0; i < 500; ++i)
      handles.push_back(spawn([i] {
        if (i % 3 == 0) this_fiber::yield();
        return std::make_unique<int>(i);
      }));
    const auto results = when_all(handles);
    ASSERT_EQ(results.size(), 500U);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(*results[static_cast<std::size_t>(i)], i);
    for (const auto& each : handles) EXPECT_FALSE(each.joinable());
  });
}

// Far from each other, so that different fibers wait for them.
template <class Handles>
Handles many_of_which_one_fails() {
  Handles handles;
  for (int i = 0; i < 300; ++i)
    handles.push_back(spawn([i] {
      if (i == 270) throw std::runtime_error("the one");
      wait_for_ever();
    }));
  return handles;
}

TEST_P(WhenRange, AFailureAmongManyStopsTheOthers) {
  run([] {
    auto handles = many_of_which_one_fails<std::deque<join_handle<>>>();
    EXPECT_EQ(message_of([&] { when_all(handles); }), "the one");
    for (const auto& each : handles) EXPECT_FALSE(each.joinable());
  });
}

TEST_P(WhenRange, AFailureAmongManyEndsAShieldedCaller) {
  run([] {
    auto handles = many_of_which_one_fails<std::vector<join_handle<>>>();
    const shield uninterrupted;
    EXPECT_EQ(message_of([&] { when_all(handles); }), "the one");
  });
}

TEST_P(WhenRange, ADeadlineOfTheCallerOfManyIsThrown) {
  run([] {
    for (int round = 0; round < 10; ++round) {
      std::vector<join_handle<>> handles;
      for (int i = 0; i < 100; ++i) handles.push_back(spawn([] { wait_for_ever(); }));
      EXPECT_THROW(timeout(2ms, [&] { when_all(handles); }), deadline_exceeded);
      for (const auto& each : handles) EXPECT_FALSE(each.joinable());
    }
  });
}

TEST_P(WhenRange, ARefusalAmongManyStopsNone) {
  run([] {
    event over;
    std::vector<join_handle<>> handles;
    for (int i = 0; i < 100; ++i) handles.push_back(spawn([&] { over.wait(); }));
    {
      const no_suspend_scope none;
      EXPECT_THROW(when_all(handles), usage_error);
    }
    auto other = spawn([&] { handles.back().join(); });
    wait_until_others_wait();
    EXPECT_THROW(when_all(handles), usage_error);
    over.set();
    other.get();
    EXPECT_NO_THROW(when_all(handles));
  });
}

TEST_P(WhenRange, ACancellationOfTheCallerStopsMany) {
  std::atomic<int> stopped{0};
  auto caller = spawn_until_it_waits(rt(), [&] {
    std::vector<join_handle<>> handles;
    for (int i = 0; i < 200; ++i)
      handles.push_back(spawn([&] {
        try {
          wait_for_ever();
        } catch (const operation_cancelled&) {
          ++stopped;
          throw;
        }
      }));
    when_all(handles);
  });
  caller.request_stop();
  EXPECT_THROW(caller.get(), operation_cancelled);
  EXPECT_EQ(stopped, 200);
}

TEST_P(WhenRange, AllOfSomeFunctions) {
  run([] {
    std::vector<std::function<int()>> functions;
    for (int i = 0; i < 10; ++i) functions.push_back([i] { return i * i; });
    EXPECT_EQ(when_all(functions)[9], 81);
    EXPECT_TRUE(when_all(std::vector<std::function<void()>>()).empty());
    functions.push_back([]() -> int { throw std::runtime_error("last"); });
    EXPECT_EQ(message_of([&] { when_all(functions); }), "last");
  });
}

TEST_P(WhenRange, AnyOfSomeHandles) {
  run([] {
    std::atomic<int> cancelled{0};
    std::vector<join_handle<int>> handles;
    for (int i = 0; i < 5; ++i)
      handles.push_back(spawn([&, i] {
        if (i != 3) {
          try {
            wait_for_ever();
          } catch (const operation_cancelled&) {
            ++cancelled;
            throw;
          }
        }
        return i;
      }));
    const auto first = when_any(handles);
    EXPECT_EQ(first.index, 3U);
    EXPECT_EQ(first.value, 3);
    EXPECT_EQ(cancelled, 4);
    for (const auto& each : handles) EXPECT_FALSE(each.joinable());
    EXPECT_THROW(when_any(handles), usage_error);
    EXPECT_THROW(when_any(std::vector<join_handle<>>()), usage_error);
  });
}

TEST_P(WhenRange, AnyThrowsTheFirstFailure) {
  run([] {
    std::vector<join_handle<>> handles;
    handles.push_back(spawn([] { wait_for_ever(); }));
    handles.push_back(spawn([] { throw std::runtime_error("first"); }));
    EXPECT_EQ(message_of([&] { when_any(handles); }), "first");
    handles.clear();
    handles.push_back(spawn([] { wait_for_ever(); }));
    EXPECT_THROW(timeout(1ms, [&] { when_any(handles); }), deadline_exceeded);
  });
}

TEST_P(WhenRange, AnyOfSomeFunctions) {
  run([] {
    std::vector<std::function<std::string()>> functions;
    for (int i = 0; i < 4; ++i)
      functions.push_back([i] {
        if (i != 2) wait_for_ever();
        return std::to_string(i);
      });
    const auto first = when_any(functions);
    EXPECT_EQ(first.index, 2U);
    EXPECT_EQ(first.value, "2");
    functions.clear();
    EXPECT_THROW(when_any(functions), usage_error);
  });
}

// A function that a view returns by value. It forgets its number when it is destroyed.
class made_by_a_view {
 public:
  explicit made_by_a_view(int number) : number_(number) {}
  made_by_a_view(made_by_a_view&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  made_by_a_view& operator=(made_by_a_view&&) = delete;
  ~made_by_a_view() { forget(&number_); }
  int operator()() {
    this_fiber::yield();
    return number_;
  }

 private:
  [[gnu::noinline]] static void forget(volatile int* number) { *number = -1; }

  int number_;
};

TEST_P(WhenRange, FunctionsThatAViewMakesLiveAsLongAsTheirFibers) {
  run([] {
    const auto make = [](int number) { return made_by_a_view(number); };
    const std::vector<int> numbers{1, 2, 3};
    EXPECT_EQ(when_all(numbers | std::views::transform(make)), numbers);
    const auto first = when_any(numbers | std::views::transform(make));
    EXPECT_EQ(first.value, static_cast<int>(first.index) + 1);
  });
}

// Of two fibers, the first has ended. Another caller waits for the second.
TEST_P(WhenRange, WhatAnotherWaitsForIsRefusedInAnyOrder) {
  run([] {
    for (int i = 0; i < 20; ++i) {
      event over;
      std::vector<join_handle<int>> handles;
      handles.push_back(spawn([] { return 1; }));
      handles.push_back(spawn([&] {
        const shield uninterrupted;
        over.wait();
        return 2;
      }));
      handles[0].join();
      auto other = spawn([&] { handles[1].join(); });
      wait_until_others_wait();
      EXPECT_THROW(when_any(handles), usage_error);
      over.set();
      other.get();
      EXPECT_EQ(handles[1].get(), 2);
    }
  });
}

}  // namespace
