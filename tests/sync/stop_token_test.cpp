#include "support/cancellation.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/task_group.hpp>

#include <functional>
#include <memory>
#include <stop_token>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class StopToken : public WorkersTest {};
ULEXITE_TEST_WORKERS(StopToken);

struct speaker {
  int base = 10;
  int plus(int more) { return base + more; }
  int alone() const { return base; }
};

int free_function(std::stop_token token, int value) { return token.stop_possible() ? value : -1; }

TEST_P(StopToken, IsGivenToAFunctionThatTakesOneFirst) {
  run([] {
    EXPECT_TRUE(spawn([](std::stop_token token) { return token == this_fiber::get_stop_token(); }).get());
    EXPECT_TRUE(spawn([](const std::stop_token& token) { return token.stop_possible(); }).get());
    EXPECT_EQ(spawn([](std::stop_token token, int a, int b) { return token.stop_possible() ? a + b : -1; }, 1, 2).get(),
              3);
    EXPECT_EQ(spawn(free_function, 4).get(), 4);
    EXPECT_EQ(spawn({.name = "gerd"}, free_function, 5).get(), 5);
    task_group group;
    EXPECT_EQ(group.spawn(free_function, 6).get(), 6);
    EXPECT_EQ(group.spawn({.name = "gerd"}, free_function, 7).get(), 7);
    EXPECT_EQ(spawn(std::function<int(std::stop_token, int)>(free_function), 8).get(), 8);
  });
  EXPECT_EQ(rt().spawn(free_function, 9).get(), 9);
  EXPECT_EQ(rt().run(free_function, 10), 10);
}

TEST_P(StopToken, OtherFunctionsAreCalledWithTheirArgumentsAlone) {
  run([] {
    speaker bill;
    EXPECT_EQ(spawn(&speaker::plus, &bill, 5).get(), 15);
    EXPECT_EQ(spawn(&speaker::alone, bill).get(), 10);
    EXPECT_EQ(spawn(&speaker::plus, std::ref(bill), 1).get(), 11);
    const auto tokens = [](auto&&... values) {
      return (0 + ... + std::is_same_v<std::remove_cvref_t<decltype(values)>, std::stop_token>);
    };
    EXPECT_EQ(spawn(tokens).get(), 1) << "a generic function takes one, as with std::jthread";
    EXPECT_EQ(spawn(tokens, 1, 2).get(), 1);
    EXPECT_EQ(spawn([](auto value) { return value; }, 3).get(), 3);
    EXPECT_EQ(spawn([](auto value, int more) { return value + more; }, 3, 4).get(), 7);
    EXPECT_TRUE(spawn([](auto token) { return token.stop_possible(); }).get());
  });
}

TEST_P(StopToken, GoesTogetherWithMoveOnlyArgumentsAndFunctions) {
  run([] {
    auto value = std::make_unique<int>(3);
    EXPECT_EQ(spawn([](std::stop_token, std::unique_ptr<int> p) { return *p; }, std::move(value)).get(), 3);
    auto held = std::make_unique<int>(4);
    EXPECT_EQ(*spawn([held = std::move(held)](std::stop_token) mutable { return std::move(held); }).get(), 4);
  });
}

TEST_P(StopToken, FollowsTheHandle) {
  run([] {
    std::atomic<int> fired{0};
    std::atomic<bool> ready{false};
    auto handle = spawn([&](std::stop_token token) {
      const std::stop_callback count(token, [&] { ++fired; });
      EXPECT_FALSE(token.stop_requested());
      ready = true;
      EXPECT_THROW(wait_for_ever(), operation_cancelled);
      wait_until([&] { return token.stop_requested(); });
      wait_until([&] { return fired == 1; });
    });
    wait_until([&] { return ready.load(); });
    EXPECT_TRUE(handle.request_stop());
    EXPECT_FALSE(handle.request_stop());
    handle.get();
    EXPECT_EQ(fired, 1);
  });
}

TEST_P(StopToken, FollowsTheGroup) {
  run([] {
    std::atomic<int> fired{0}, ready{0};
    task_group group;
    for (int i = 0; i < 5; ++i)
      group.spawn([&](std::stop_token token) {
        const std::stop_callback count(token, [&] { ++fired; });
        ++ready;
        wait_until([&] { return token.stop_requested(); });
      });
    wait_until([&] { return ready == 5; });
    group.request_stop();
    group.request_stop();
    group.wait();
    EXPECT_EQ(fired, 5);
  });
}

TEST_P(StopToken, FollowsTheRuntime) {
  std::atomic<int> fired{0}, ready{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 5; ++i)
    all.push_back(rt().spawn([&](std::stop_token token) {
      const std::stop_callback count(token, [&] { ++fired; });
      ++ready;
      wait_until([&] { return token.stop_requested(); });
      EXPECT_TRUE(this_fiber::stop_requested());
    }));
  wait_until([&] { return ready == 5; });
  const std::stop_token outside = all[0].get_stop_token();
  rt().request_stop();
  rt().request_stop();
  EXPECT_TRUE(outside.stop_requested());
  for (auto& each : all) each.get();
  EXPECT_EQ(fired, 5);
  EXPECT_TRUE(rt().spawn([](std::stop_token token) { return token.stop_requested(); }).get()) << "spawned later";
  EXPECT_TRUE(rt().spawn([] { return this_fiber::stop_requested(); }).get());
}

// Fibers that wait until they are asked to stop, each with a callback of its own.
class waiting_fibers {
 public:
  explicit waiting_fibers(int count) : count_(count) {}
  ~waiting_fibers() { EXPECT_EQ(woken_, count_); }

  // Returns when all of them wait. On a plain thread.
  void await(const runtime& rt) const {
    wait_until([&] { return begun_ == count_; });
    wait_until_all_wait(rt);
  }

  // The kind of each. A second callback, which is called before the other, gives the fiber time to be woken early.
  void operator()(std::stop_token mine) {
    int calls = 0;
    const std::stop_callback count(mine, [&] { ++calls; });
    const std::stop_callback dawdle(mine, [&] { hog_until([&] { return woken_ != 0; }, 5ms); });
    ++begun_;
    try {
      wait_for_ever();
    } catch (const operation_cancelled&) {
      EXPECT_TRUE(mine.stop_requested());
      EXPECT_EQ(calls, 1);
      ++woken_;
    }
  }

 private:
  const int count_;
  std::atomic<int> begun_{0}, woken_{0};
};

TEST_P(StopToken, IsToldBeforeAFiberThatWaitsIsWoken) {
  {
    waiting_fibers one(1);
    auto handle = rt().spawn(std::ref(one));
    one.await(rt());
    handle.request_stop();
    handle.get();
  }
  {
    waiting_fibers children(3);
    task_group group;
    run([&] {
      for (int i = 0; i < 3; ++i) group.spawn(std::ref(children));
    });
    children.await(rt());
    group.request_stop();
    group.wait();
    EXPECT_EQ(group.failures(), 0u);
  }
  waiting_fibers all(3);
  std::vector<join_handle<>> handles;
  for (int i = 0; i < 3; ++i) handles.push_back(rt().spawn(std::ref(all)));
  all.await(rt());
  rt().request_stop();
  for (auto& each : handles) each.get();
}

TEST_P(StopToken, MayBeTakenBeforeTheStartWhileRunningAndAfterTheEnd) {
  run([] {
    std::atomic<bool> go{false};
    auto handle = spawn([&] {
      wait_until([&] { return go.load(); });
      return this_fiber::get_stop_token();
    });
    const std::stop_token early = handle.get_stop_token();
    EXPECT_TRUE(early.stop_possible());
    EXPECT_FALSE(early.stop_requested());
    handle.request_stop();
    EXPECT_TRUE(early.stop_requested());
    EXPECT_EQ(early, handle.get_stop_token());
    go = true;
    handle.join();
    EXPECT_EQ(early, handle.get_stop_token());
    EXPECT_EQ(handle.get(), early);

    auto ended = spawn([] {});
    ended.join();
    const std::stop_token late = ended.get_stop_token();
    EXPECT_TRUE(late.stop_possible());
    EXPECT_FALSE(late.stop_requested());
    ended.request_stop();
    EXPECT_TRUE(late.stop_requested());
    auto asked = spawn([] {});
    asked.request_stop();
    asked.join();
    EXPECT_TRUE(asked.get_stop_token().stop_requested());
    asked.detach();
    EXPECT_FALSE(asked.get_stop_token().stop_possible()) << "without a fiber";
    EXPECT_FALSE(asked.request_stop());
  });
}

TEST_P(StopToken, OutlivesTheFiberAndTheRuntime) {
  std::stop_token inner, unasked, after;
  join_handle<> kept, unused;
  {
    runtime other({.threads = GetParam()});
    other.run([&] { inner = this_fiber::get_stop_token(); });
    unasked = other.spawn([](std::stop_token token) { return token; }).get();
    kept = other.spawn([] {});
    kept.join();
    after = kept.get_stop_token();
    unused = other.spawn([] {});
    unused.join();
  }
  EXPECT_FALSE(after.stop_requested()) << "the fiber ended before the runtime was asked to stop";
  kept.request_stop();
  EXPECT_TRUE(after.stop_requested());
  EXPECT_TRUE(unused.get_stop_token().stop_possible());
  for (const std::stop_token& each : {inner, unasked}) {
    int fired = 0;
    const std::stop_callback count(each, [&] { ++fired; });
    EXPECT_EQ(fired, each.stop_requested() ? 1 : 0);
  }
}

TEST_P(StopToken, IsEmptyOnAPlainThread) {
  EXPECT_FALSE(this_fiber::get_stop_token().stop_possible());
  std::thread([] { EXPECT_FALSE(this_fiber::get_stop_token().stop_possible()); }).join();
}

TEST_P(StopToken, CallbacksOfARequestRunBeforeItReturns) {
  run([] {
    channel<int> asked(1);
    auto handle = spawn([] { wait_until([] { return this_fiber::stop_requested(); }); });
    const std::stop_callback tell(handle.get_stop_token(), [&] {
      int one = 1;
      (void)asked.try_send(one);
    });
    handle.request_stop();
    EXPECT_EQ(asked.size(), 1u);
    handle.get();
  });
}

// The fiber, others and the request make the token at the same time. A later caller sees it.
TEST_P(StopToken, IsToldWhateverTheOrderOfItsMakingAndTheRequest) {
  run([] {
    for (int i = 0; i < times(1000); ++i) {
      std::atomic<bool> asked{false};
      std::atomic<int> fired{0};
      auto handle = spawn([&] {
        if (i % 2 == 0) this_fiber::yield();
        const std::stop_token mine = this_fiber::get_stop_token();
        const std::stop_callback count(mine, [&] { ++fired; });
        wait_until([&] { return asked.load(); });
        EXPECT_TRUE(mine.stop_requested());
        EXPECT_EQ(fired, 1);
      });
      if (i % 3 == 0) this_fiber::yield();
      handle.request_stop();
      asked = true;
      handle.get();
    }
  });
}

}  // namespace
