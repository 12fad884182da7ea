// Awaitables and coroutines of other libraries.

#include "ways.hpp"

#include <coroutine>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Foreign : public WaysTest {};
ULEXITE_TEST_WAYS(Foreign);

enum class form { ready, inline_void, inline_bool, inline_handle, thread_at_once, thread_later };
constexpr form forms[] = {form::ready,         form::inline_void,    form::inline_bool,
                          form::inline_handle, form::thread_at_once, form::thread_later};

// Gives a number, or an exception for a negative one.
struct number_base {
  int number;
  [[nodiscard]] int await_resume() const {
    if (number < 0) throw std::runtime_error("negative");
    return number;
  }
};
struct at_once : number_base {
  [[nodiscard]] bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept { ADD_FAILURE(); }
};
struct resumes_inline : number_base {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const { waiting.resume(); }
};
struct does_not_suspend : number_base {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
};
struct transfers_back : number_base {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) const noexcept {
    return waiting;
  }
};
// Completes on a plain thread, perhaps before await_suspend has returned.
struct on_a_thread : number_base {
  bool before;
  std::vector<std::jthread>& threads;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    auto completed = std::make_shared<std::atomic<bool>>(false);
    threads.emplace_back([waiting, completed, wait = !before] {
      if (wait) std::this_thread::sleep_for(100us);
      waiting.resume();
      *completed = true;
    });
    if (before) wait_for(*completed);
  }
  static void wait_for(const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::yield();
  }
};

task<int> get(form how, int number, std::vector<std::jthread>& threads) {
  switch (how) {
    case form::ready: co_return co_await at_once{{number}};
    case form::inline_void: co_return co_await resumes_inline{{number}};
    case form::inline_bool: co_return co_await does_not_suspend{{number}};
    case form::inline_handle: co_return co_await transfers_back{{number}};
    default: break;
  }
  co_return co_await on_a_thread{{number}, how == form::thread_at_once, threads};
}

int await_in_a_fiber(form how, int number, std::vector<std::jthread>& threads) {
  switch (how) {
    case form::ready: return await(at_once{{number}});
    case form::inline_void: return await(resumes_inline{{number}});
    case form::inline_bool: return await(does_not_suspend{{number}});
    case form::inline_handle: return await(transfers_back{{number}});
    default: return await(on_a_thread{{number}, how == form::thread_at_once, threads});
  }
}

TEST_P(Foreign, AwaitablesGiveTheirResults) {
  for (const form how : forms) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      const auto id = finish([&]() -> task<bool> {
        const auto mine = this_fiber::id();
        EXPECT_EQ(co_await get(how, i, threads), i);
        co_return mine == this_fiber::id() && mine != 0;  // on a worker again
      });
      EXPECT_TRUE(id);
      EXPECT_THROW(finish([&]() -> task<> { (void)co_await get(how, -1, threads); }), std::runtime_error);
    }
  }
}

// As the language does: the operand may be a temporary, its awaiter is a variable.
struct only_as_a_variable {
  [[nodiscard]] bool await_ready() & noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) & noexcept { ADD_FAILURE(); }
  [[nodiscard]] int await_resume() & noexcept { return 3; }
};

TEST_P(Foreign, AnAwaiterIsCalledAsAVariable) {
  EXPECT_EQ(finish([]() -> task<int> { co_return co_await only_as_a_variable(); }), 3);
  EXPECT_EQ(await(only_as_a_variable()), 3);
}

TEST_P(Foreign, AwaitWorksInFibersAndOnThreads) {
  for (const form how : forms) {
    std::vector<std::jthread> threads;
    const auto check = [&] {
      EXPECT_EQ(await_in_a_fiber(how, 3, threads), 3);
      EXPECT_THROW(await_in_a_fiber(how, -1, threads), std::runtime_error);
    };
    for (int i = 0; i < 10; ++i) {
      run(check);
      check();
    }
    EXPECT_EQ(finish([&]() -> task<int> {
                co_await co_yield_now();
                co_return await_in_a_fiber(how, 4, threads);
              }),
              4)
        << "in a coroutine it keeps the stack";
  }
}

TEST_P(Foreign, ManyCompleteOnThreadsAtTheSameTime) {
  // Handles that one thread resumes.
  struct pool {
    channel<std::coroutine_handle<>> waiting{unbounded};
    std::thread thread{[this] {
      for (const auto each : waiting) each.resume();
    }};
    auto operator co_await() {
      struct awaiter {
        pool& on;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h) const { on.waiting.send(h); }
        void await_resume() const noexcept {}
      };
      return awaiter{*this};
    }
  } one;
  std::vector<join_handle<int>> all;
  const int each = times(200);
  for (int i = 0; i < 20; ++i)
    all.push_back(start([&]() -> task<int> {
      int done = 0;
      for (int k = 0; k < each; ++k) {
        co_await one;
        if (k % 8 == 0) co_await co_yield_now();
        ++done;
      }
      co_return done;
    }));
  for (auto& handle : all) EXPECT_EQ(handle.get(), each);
  one.waiting.close();
  one.thread.join();
}

// Completes when it is told to, or at a stop.
class manual {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    started.set();
  }
  [[nodiscard]] int await_resume() const {
    if (stopped_) throw std::runtime_error("stopped");
    return 7;
  }
  void complete(bool stopped) {
    stopped_ = stopped;
    waiting_.resume();
  }
  ulexite::event started;

 private:
  std::coroutine_handle<> waiting_;
  bool stopped_ = false;
};
struct reference_to {
  manual& of;
  manual& operator co_await() const noexcept { return of; }
};

TEST_P(Foreign, TheWaitIsNoCancellationPoint) {
  manual operation;
  auto waits = start([&]() -> task<int> { co_return co_await reference_to{operation}; });
  operation.started.wait();
  wait_until_all_wait(rt());
  waits.request_stop();
  wait_until_all_wait(rt());
  EXPECT_FALSE(waits.done());
  operation.complete(false);
  EXPECT_EQ(waits.get(), 7);
}

// As an operation that a stop of its token ends, on a thread of its own.
int await_with_a_token(manual& operation, bool ends) {
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
  std::jthread ender;
  return await([&](std::stop_token token) {
    on_stop.emplace(token, [&, ends] { ender = std::jthread([&, ends] { operation.complete(ends); }); });
    return reference_to{operation};
  });
}

TEST_P(Foreign, AStopOfAFiberStopsTheOperationByItsToken) {
  for (const bool ends : {true, false}) {
    manual operation;
    auto waits = rt().spawn([&] { return await_with_a_token(operation, ends); });
    operation.started.wait();
    wait_until_all_wait(rt());
    waits.request_stop();
    if (ends) {
      EXPECT_THROW(waits.get(), operation_cancelled);
    } else {
      EXPECT_EQ(waits.get(), 7) << "what was done is not lost";
    }
  }
}

// The caller was asked to stop, or its deadline is over, but an exception in the callback would end the process.
TEST_P(Foreign, ACallbackOfTheTokenMayTryToSend) {
  manual operation;
  channel<int> log(unbounded);
  const auto waits = [&] {
    std::optional<std::stop_callback<std::function<void()>>> on_stop;
    await([&](std::stop_token token) {
      on_stop.emplace(token, [&] {
        for (int i = 0; i < 300; ++i) EXPECT_EQ(log.try_send(i), channel_status::ok);
        operation.complete(true);
      });
      return reference_to{operation};
    });
  };
  auto stopped = rt().spawn(waits);
  operation.started.wait();
  wait_until_all_wait(rt());
  stopped.request_stop();
  EXPECT_THROW(stopped.get(), operation_cancelled);
  const auto late = [&] {
    const deadline_scope limit(1ms);
    EXPECT_THROW(waits(), deadline_exceeded);
  };
  run(late);
  late();
}

TEST_P(Foreign, ADeadlineStopsTheOperationByItsToken) {
  const auto late = [] {
    manual operation;
    const deadline_scope limit(1ms);
    EXPECT_THROW(await_with_a_token(operation, true), deadline_exceeded);
  };
  run(late);
  late();
  EXPECT_EQ(await([](const std::stop_token&) { return at_once{{6}}; }), 6);
}

// A coroutine of another library, on a plain thread or in a fiber.
TEST_P(Foreign, CoroutinesAwaitTasksAndOperations) {
  channel<int> values(10), results(10);
  const auto use = [](channel<int>& from, channel<int>& to) -> eager {
    const auto one = co_await co_receive(from);
    const int two = co_await [](channel<int>& mine) -> task<int> {
      co_await co_sleep_for(1us);
      co_return *co_await co_receive(mine);
    }(from);
    co_await co_send(to, *one + two);
    EXPECT_EQ(co_await co_select(on_receive(from, [](auto v) { EXPECT_FALSE(v); }), after(1h)), 0u);
  };
  const auto feed = [&] {
    auto feeder = rt().spawn([&] {
      values.send(1);
      values.send(2);
    });
    use(values, results);
    feeder.get();
  };
  auto closes = rt().spawn([&] {
    EXPECT_EQ(results.receive(), 3);
    values.close();
  });
  feed();
  closes.get();
}

TEST_P(Foreign, OnFiberCallsAFunctionThatBlocks) {
  const auto use = [](runtime& in, std::atomic<int>& ended) -> eager {
    const auto text = co_await on_fiber(in, [] {
      this_fiber::sleep_for(1ms);
      return std::make_unique<int>(5);
    });
    EXPECT_EQ(*text, 5);
    EXPECT_NE(this_fiber::id(), 0u) << "on that fiber";
    co_await on_fiber(in, [] { this_fiber::yield(); });
    bool thrown = false;
    try {
      (void)co_await on_fiber(in, []() -> int { throw std::runtime_error("function"); });
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
    ++ended;
  };
  std::atomic<int> ended{0};
  for (int i = 0; i < 10; ++i) use(rt(), ended);
  wait_until([&] { return ended == 10; });
}

TEST_P(Foreign, OnFiberResumesWhereItIsTold) {
  channel<std::coroutine_handle<>> executor(unbounded);
  std::atomic<bool> over{false};
  const auto use = [](runtime& in, channel<std::coroutine_handle<>>& on, std::thread::id home,
                      std::atomic<bool>& done) -> eager {
    const auto back = [&](std::coroutine_handle<> h) { on.send(h); };
    EXPECT_EQ(co_await on_fiber(in, [] { return this_fiber::id() != 0 ? 4 : 0; }, back), 4);
    EXPECT_EQ(std::this_thread::get_id(), home);
    done = true;
    on.close();
  };
  use(rt(), executor, std::this_thread::get_id(), over);
  for (const auto next : executor) next.resume();
  EXPECT_TRUE(over);
}

TEST_P(Foreign, AFrameOfAStoppedRuntimeIsKeptForTheOperation) {
  static std::atomic<int> alive{0};
  alive = 0;
  manual operation;
  runtime& ends = make(std::get<1>(GetParam()));
  ends.spawn([&operation]() -> task<> {
        const lives here(alive);
        (void)co_await reference_to{operation};
        ADD_FAILURE() << "no worker runs it";
      })
      .detach();
  operation.started.wait();
  wait_until_all_wait(ends);
  EXPECT_EQ(end(ends, shutdown_mode::abandon), 1u);
  EXPECT_EQ(alive, 1);
  operation.complete(false);
  EXPECT_EQ(alive, 1);
}

}  // namespace
