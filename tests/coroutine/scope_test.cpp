// co_scope: the tests of tests/sync/scope_test.cpp for a body and children that are coroutines.

#include "ways.hpp"

#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoScope : public WaysTest {};
ULEXITE_TEST_WAYS(CoScope);

task<> waits_for_ever(std::atomic<int>& alive) {
  const lives here(alive);
  channel<int> never;
  co_await co_receive(never);
  ADD_FAILURE() << "received from nobody";
}
task<> fail(const char* why) {
  co_await co_yield_now();
  throw std::runtime_error(why);
}
// The message of the exception that `body` throws.
task<std::string> words_of(task<> body) {
  try {
    co_await std::move(body);
  } catch (const std::exception& error) {
    co_return error.what();
  }
  co_return "nothing";
}

TEST_P(CoScope, ReturnsWhatTheBodyGives) {
  finish([]() -> task<> {
    std::atomic<int> ran{0};
    const int value = co_await co_scope([&](task_group& group) -> task<int> {
      group.spawn([&]() -> task<> {
        co_await co_yield_now();
        ++ran;
      });
      co_return 5;
    });
    EXPECT_EQ(value, 5);
    EXPECT_EQ(ran, 1);
    const auto moved =
        co_await co_scope([](task_group&) -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(6); });
    EXPECT_EQ(*moved, 6);
    co_await co_scope([&](task_group& group) -> task<> {
      group.spawn([&] { ++ran; });
      co_return;
    });
    EXPECT_EQ(ran, 2);
  });
}

TEST_P(CoScope, ABatchOfCoroutinesIsWaitedForToo) {
  std::atomic<int> sum{0};
  finish([&]() -> task<> {
    co_await co_scope([&](task_group& group) -> task<> {
      group.spawn_batch(20, [&](std::size_t i) -> task<> {
        co_await co_yield_now();
        sum += static_cast<int>(i);
      });
      EXPECT_TRUE(group.try_spawn([&]() -> task<> {
        co_await co_sleep_for(1us);
        sum += 100;
      }));
      co_return;
    });
  });
  EXPECT_EQ(sum, 290);
}

TEST_P(CoScope, ThrowsWhatTheBodyThrows) {
  std::atomic<int> alive{0};
  finish([&]() -> task<> {
    const std::string told = co_await words_of(co_scope([&](task_group& group) -> task<> {
      for (int i = 0; i < 3; ++i) group.spawn([&] { return waits_for_ever(alive); });
      auto failing = group.spawn(fail, "child");
      co_await co_join(failing);
      throw std::runtime_error("body");
    }));
    EXPECT_EQ(told, "body");
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(CoScope, TheFailureOfAChildEndsTheWaitOfTheBody) {
  std::atomic<int> alive{0};
  finish([&]() -> task<> {
    for (int i = 0; i < times(100); ++i) {
      const std::string told = co_await words_of(co_scope([&](task_group& group) -> task<> {
        group.spawn([&] { return waits_for_ever(alive); });
        group.spawn(fail, "child");
        co_await waits_for_ever(alive);
      }));
      EXPECT_EQ(told, "child");
      EXPECT_EQ(alive, 0);
      EXPECT_FALSE(this_fiber::stop_requested());
      this_fiber::check();
      co_await co_sleep_for(1us);
    }
  });
}

TEST_P(CoScope, Nests) {
  const int sum = finish([]() -> task<int> {
    co_return co_await co_scope([](task_group& outer) -> task<int> {
      auto left = outer.spawn([] {
        return co_scope([](task_group& inner) -> task<int> {
          auto a = inner.spawn([]() -> task<int> { co_return 1; });
          auto b = inner.spawn([] { return 2; });
          const int first = co_await co_get(a);
          co_return first + co_await co_get(b);
        });
      });
      const int right = co_await co_scope([](task_group& inner) -> task<int> {
        auto child = inner.spawn([]() -> task<int> { co_return 4; });
        co_return co_await co_get(child);
      });
      co_return right + co_await co_get(left);
    });
  });
  EXPECT_EQ(sum, 7);
}

TEST_P(CoScope, AFailureOfTheOuterScopeReachesTheInnerBody) {
  std::atomic<int> alive{0};
  bool inner_ended = false;
  finish([&]() -> task<> {
    const std::string told = co_await words_of(co_scope([&](task_group& outer) -> task<> {
      outer.spawn([]() -> task<> {
        co_await co_sleep_for(1ms);
        throw std::runtime_error("outer child");
      });
      try {
        co_await co_scope([&](task_group& inner) -> task<> {
          inner.spawn([&] { return waits_for_ever(alive); });
          co_await waits_for_ever(alive);
        });
      } catch (const operation_cancelled&) {
        inner_ended = true;
      }
      EXPECT_EQ(alive, 0);
      EXPECT_THROW(this_fiber::check(), operation_cancelled);  // still, because the outer scope has failed
    }));
    EXPECT_EQ(told, "outer child");
    this_fiber::check();
  });
  EXPECT_TRUE(inner_ended);
}

TEST_P(CoScope, AFailureOfTheInnerScopeStaysThere) {
  std::atomic<int> alive{0};
  finish([&]() -> task<> {
    const int value = co_await co_scope([&](task_group& outer) -> task<int> {
      auto sibling = outer.spawn([]() -> task<int> {
        co_await co_sleep_for(1ms);
        co_return 3;
      });
      const std::string told = co_await words_of(co_scope([&](task_group& inner) -> task<> {
        inner.spawn(fail, "inner child");
        co_await waits_for_ever(alive);
      }));
      EXPECT_EQ(told, "inner child");
      this_fiber::check();
      co_return co_await co_get(sibling);
    });
    EXPECT_EQ(value, 3);
  });
}

TEST_P(CoScope, AFailureThatCameFirstIsThrownInsteadOfTheCancellation) {
  std::atomic<int> alive{0};
  ulexite::event stopped;
  auto parent = start_until_it_waits([&]() -> task<> {
    co_await co_scope([&](task_group& group) -> task<> {
      auto child = group.spawn(fail, "child");
      co_await co_join(child);
      {
        const shield until_the_stop;
        co_await co_wait(stopped);
      }
      co_await waits_for_ever(alive);
    });
  });
  parent.request_stop();
  stopped.set();
  try {
    parent.get();
    ADD_FAILURE() << "no exception";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "child");
  }
}

TEST_P(CoScope, AStopEndsTheChildrenFirst) {
  std::atomic<int> alive{0};
  auto parent = start_until_it_waits([&]() -> task<> {
    const lives last(alive);
    try {
      co_await co_scope([&](task_group& group) -> task<> {
        for (int i = 0; i < 3; ++i) group.spawn([&] { return waits_for_ever(alive); });
        co_await waits_for_ever(alive);
      });
    } catch (const operation_cancelled&) {
      EXPECT_EQ(alive, 1);
      throw;
    }
  });
  EXPECT_EQ(alive, 5);
  parent.request_stop();
  EXPECT_THROW(parent.get(), operation_cancelled);
  EXPECT_EQ(alive, 0);
}

// Children and body meet the same deadline at the same time: that is what is thrown, whichever was first.
TEST_P(CoScope, ADeadlineOfAllIsADeadline) {
  std::atomic<int> alive{0};
  finish([&]() -> task<> {
    for (int i = 0; i < times(30); ++i) {
      bool exceeded = false;
      const deadline_scope limit(100us);
      try {
        co_await co_scope([&](task_group& group) -> task<> {
          for (int k = 0; k < 4; ++k) group.spawn([&] { return waits_for_ever(alive); });
          co_await waits_for_ever(alive);
        });
      } catch (const deadline_exceeded&) {
        exceeded = true;
      }
      EXPECT_TRUE(exceeded);
      EXPECT_EQ(alive, 0);
    }
    this_fiber::check();
  });
}

}  // namespace
