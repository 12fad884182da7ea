// What a task is: a lazy coroutine with a result, which is awaited once.

#include "ways.hpp"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Task : public WaysTest {};
ULEXITE_TEST_WAYS(Task);

task<int> sum(int a, int b) { co_return a + b; }
task<> yields() { co_await co_yield_now(); }
task<> fails() {
  co_await co_yield_now();
  throw std::runtime_error("fails");
}

TEST_P(Task, GivesItsValue) {
  EXPECT_EQ(finish([] { return sum(1, 2); }), 3);
  finish([] { return yields(); });
  EXPECT_EQ(finish([]() -> task<std::string> {
              co_await co_yield_now();
              co_return "text";
            }),
            "text");
}

TEST_P(Task, GivesReferences) {
  int number = 1;
  int& got = finish([&]() -> task<int&> {
    co_await co_yield_now();
    co_return number;
  });
  EXPECT_EQ(&got, &number);
  const std::string text = "constant";
  EXPECT_EQ(&finish([&]() -> task<const std::string&> {
    const std::string& inner = co_await [](const std::string& of) -> task<const std::string&> { co_return of; }(text);
    co_return inner;
  }),
            &text);
}

TEST_P(Task, GivesWhatCanOnlyBeMoved) {
  const auto make = []() -> task<std::unique_ptr<int>> {
    co_await co_yield_now();
    co_return std::make_unique<int>(5);
  };
  EXPECT_EQ(*finish(make), 5);
  EXPECT_EQ(*finish([&]() -> task<std::unique_ptr<int>> {
    auto inner = co_await make();
    ++*inner;
    co_return inner;
  }),
            6);
}

TEST_P(Task, GivesLargeValues) {
  using large = std::array<std::uint64_t, 100>;
  const auto fill = [](std::uint64_t with) -> task<large> {
    large values;
    values.fill(with);
    co_await co_yield_now();
    co_return values;
  };
  const large got = finish([&]() -> task<large> {
    large first = co_await fill(3);
    const large second = co_await fill(4);
    first.back() = second.back();
    co_return first;
  });
  EXPECT_EQ(got.front(), 3u);
  EXPECT_EQ(got.back(), 4u);
}

struct move_fails {
  int left;
  explicit move_fails(int moves) : left(moves) {}
  move_fails(move_fails&& other) : left(other.left - 1) {
    if (left < 0) throw std::runtime_error("move");
  }
  move_fails(const move_fails&) = delete;
  move_fails& operator=(const move_fails&) = delete;
  ~move_fails() = default;
};

TEST_P(Task, AMoveOfTheResultMayThrow) {
  for (int moves = 0; moves < 8; ++moves) {
    int failures = 0;
    const auto make = [moves]() -> task<move_fails> {
      co_await co_yield_now();
      co_return move_fails(moves);
    };
    const auto count = [&]() -> task<> {
      try {
        const move_fails got = co_await make();
        EXPECT_GE(got.left, 0);
      } catch (const std::runtime_error&) {
        ++failures;
      }
    };
    finish(count);
    EXPECT_EQ(failures, moves < 2 ? 1 : 0) << "into the frame, and out of it";
    auto handle = start(make);
    try {
      EXPECT_GE(handle.get().left, 0);
    } catch (const std::runtime_error&) {
      EXPECT_LT(moves, 6);
    }
  }
}

TEST_P(Task, ThrowsItsException) {
  EXPECT_THROW(finish([] { return fails(); }), std::runtime_error);
  EXPECT_EQ(finish([]() -> task<int> {
              int caught = 0;
              for (int i = 0; i < 3; ++i) {
                try {
                  co_await fails();
                } catch (const std::runtime_error&) {
                  ++caught;
                }
                co_await co_yield_now();
              }
              co_return caught;
            }),
            3);
}

TEST_P(Task, UnwindsThroughItsChildren) {
  std::atomic<int> alive{0};
  const auto at_depth = [&](auto self, int depth) -> task<int> {
    const lives here(alive);
    if (depth == 0) co_await fails();
    co_return co_await self(self, depth - 1) + 1;
  };
  EXPECT_THROW(finish([&] { return at_depth(at_depth, sanitized ? 30 : 100); }), std::runtime_error);
  EXPECT_EQ(alive, 0);
}

TEST_P(Task, ReturnsThroughChildrenOfAllKinds) {
  const auto deep = [](auto self, int depth) -> task<int> {
    if (depth % 3 == 0) co_await co_yield_now();
    if (depth % 7 == 0) co_await co_sleep_for(1us);
    if (depth == 0) co_return 0;
    co_return co_await self(self, depth - 1) + 1;
  };
  const int depth = sanitized ? 50 : 300;  // each call is on the stack until it first waits
  EXPECT_EQ(finish([&] { return deep(deep, depth); }), depth);
}

// No child waits, so each is a call, whose frame must not stay on the stack.
TEST_P(Task, AMillionReadyChildrenNeedNoStack) {
  const int count = times(1'000'000);
  EXPECT_EQ(finish([&]() -> task<int> {
              int total = 0;
              for (int i = 0; i < count; ++i) total += co_await sum(1, 0);
              co_return total;
            }),
            count);
}

// Each child waits, and continues its parent when it ends.
TEST_P(Task, ManyChildrenThatWaitNeedNoStack) {
  const int count = times(100'000);
  EXPECT_EQ(finish([count]() -> task<int> {
              for (int i = 0; i < count; ++i) co_await yields();
              co_return count;
            }),
            count);
}

TEST_P(Task, IsLazy) {
  int begun = 0;
  const auto body = [&]() -> task<int> {
    ++begun;
    co_return 1;
  };
  EXPECT_EQ(finish([&]() -> task<int> {
              task<int> later = body();
              EXPECT_EQ(begun, 0);
              co_await co_yield_now();
              EXPECT_EQ(begun, 0);
              co_return co_await std::move(later);
            }),
            1);
  EXPECT_EQ(begun, 1);
}

TEST_P(Task, DestroysItsArgumentsIfItNeverStarts) {
  auto token = std::make_shared<int>(1);
  const auto keep = [](std::shared_ptr<int> kept) -> task<int> { co_return *kept; };
  {
    task<int> one = keep(token), two = keep(token);
    EXPECT_EQ(token.use_count(), 3);
    one = std::move(two);
    EXPECT_EQ(token.use_count(), 2);
    one = task<int>();
    EXPECT_EQ(token.use_count(), 1);
    two = keep(token);
    EXPECT_EQ(finish([&]() -> task<int> { co_return co_await std::move(two); }), 1);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Task, KeepsItsArgumentsUntilItsEnd) {
  auto token = std::make_shared<int>(4);
  auto parent = start([&]() -> task<int> {
    const auto body = [](std::shared_ptr<int> kept) -> task<int> {
      co_await co_sleep_for(1ms);
      co_return *kept + static_cast<int>(kept.use_count());
    };
    const int got = co_await body(token);
    EXPECT_EQ(token.use_count(), 1);
    co_return got;
  });
  EXPECT_EQ(parent.get(), 6);
}

TEST_P(Task, IsAwaitedOnce) {
  finish([]() -> task<> {
    task<int> once = sum(1, 1);
    const int first = co_await std::move(once);
    EXPECT_EQ(first, 2);
    bool refused = false;
    try {
      (void)co_await std::move(once);
    } catch (const usage_error& e) {
      refused = std::string(e.what()).find("twice") != std::string::npos;
    }
    EXPECT_TRUE(refused);
  });
}

TEST_P(Task, WithoutACoroutineIsRefused) {
  finish([]() -> task<> {
    bool refused = false;
    try {
      (void)co_await task<int>();
    } catch (const usage_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
  EXPECT_THROW(finish([] { return task<int>(); }), usage_error);
  EXPECT_THROW(co_spawn(rt(), task<int>()).get(), usage_error);
  EXPECT_THROW(await(task<>()), usage_error);
}

TEST_F(RuntimeTest, TasksRunOnPlainThreads) {
  EXPECT_EQ(await(sum(2, 3)), 5);
  EXPECT_THROW(await(fails()), std::runtime_error);
  channel<int> there, back;
  std::thread echo([&] {
    await([](channel<int>& from, channel<int>& to) -> task<> {
      while (const auto value = co_await co_receive(from)) co_await co_send(to, *value + 1);
      to.close();
    }(there, back));
  });
  for (int i = 0; i < times(1000); ++i) {
    there.send(i);
    EXPECT_EQ(back.receive(), i + 1);
  }
  there.close();
  EXPECT_EQ(back.receive(), std::nullopt);
  echo.join();
}

}  // namespace
