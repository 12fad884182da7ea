// Senders on the workers, with a library of senders that is only as large as these tests.

#include "support/mini_senders.hpp"
#define ULEXITE_SENDERS ::mini

#include "support/waiting.hpp"

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>
#include <ulexite/interop/execution.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace ue = ulexite::execution;

static_assert(mini::scheduler<ue::fiber_scheduler> && mini::scheduler<ue::job_scheduler>);

class Execution : public WorkersTest {};
ULEXITE_TEST_WORKERS(Execution);

// Sleeps until it is asked to stop, and then for a while.
void sleep_until_stopped(std::atomic<bool>& ended) {
  try {
    this_fiber::sleep_for(1h);
  } catch (const operation_cancelled&) {
    const shield cleans_up;
    this_fiber::sleep_for(1ms);
    ended = true;
    throw;
  }
}

TEST_P(Execution, WaitGivesTheValues) {
  const auto check = [] {
    EXPECT_EQ(std::get<0>(*ue::wait(mini::just(3))), 3);
    EXPECT_EQ(std::get<1>(*ue::wait(mini::just(1, std::string("text")))), "text");
    EXPECT_EQ(std::get<0>(*ue::wait(mini::just(1) | mini::then([](int n) { return n + 1; }))), 2);
    EXPECT_EQ(*std::get<0>(*ue::wait(mini::just(1) | mini::then([](int n) { return std::make_unique<int>(n); }))), 1);
    EXPECT_TRUE(ue::wait(mini::just()));
  };
  run(check);
  check();
}

// By the library's connect, which awaits it.
TEST_P(Execution, ATaskIsASender) {
  const auto add = [](int a, int b) -> task<int> {
    co_await co_sleep_for(1us);
    co_return a + b;
  };
  const auto fail = []() -> task<> {
    co_await co_yield_now();
    throw std::runtime_error("failed");
  };
  const auto sleep = []() -> task<> { co_await co_sleep_for(1h); };
  const auto check = [&] {
    EXPECT_EQ(std::get<0>(*ue::wait(add(1, 2))), 3);
    EXPECT_TRUE(ue::wait([]() -> task<> { co_return; }()));
    EXPECT_THROW(ue::wait(fail()), std::runtime_error);
  };
  run(check);
  check();
  expect_stop_ends(rt(), [&] { ue::wait(sleep()); });
  run([&] { EXPECT_THROW(timeout(2ms, [&] { ue::wait(sleep()); }), deadline_exceeded); });
}

struct either : mini::sender_of<mini::set_value_t(int), mini::set_value_t(std::string)> {
  template <class R>
  struct operation {
    bool number;
    R to;
    void start() noexcept {
      number ? mini::set_value(std::move(to), 1) : mini::set_value(std::move(to), std::string("one"));
    }
  };
  template <class R>
  operation<R> connect(R to) const {
    return {number, std::move(to)};
  }
  bool number = true;
};

TEST_P(Execution, WaitGivesOneOfSeveralCompletions) {
  either of;
  EXPECT_EQ(std::get<0>(std::get<0>(*ue::wait(of))), 1);
  of.number = false;
  EXPECT_EQ(std::get<0>(std::get<1>(*ue::wait(of))), "one");
}

TEST_P(Execution, WaitThrowsErrorsAndGivesNothingForStopped) {
  const auto check = [] {
    EXPECT_THROW(ue::wait(mini::just(1) | mini::then([](int) -> int { throw std::runtime_error("then"); })),
                 std::runtime_error);
    EXPECT_THROW(ue::wait(mini::just_error(std::make_error_code(std::errc::broken_pipe))), std::system_error);
    EXPECT_THROW(ue::wait(mini::just_error(std::string("text"))), std::string);
    EXPECT_FALSE(ue::wait(mini::just_stopped()));
  };
  run(check);
  check();
}

TEST_P(Execution, FibersAndJobsContinue) {
  const auto check = [this](ue::fiber_scheduler on) {
    EXPECT_TRUE(std::get<0>(*ue::wait(on.schedule() | mini::then([] {
                                        this_fiber::sleep_for(1us);
                                        return in_fiber();
                                      }))));
    EXPECT_TRUE(std::get<0>(*ue::wait(on.as_jobs().schedule() |
                                      mini::then([this] { return !in_fiber() && &current_runtime() == &rt(); }))));
  };
  for (int i = 0; i < 50; ++i) {
    run([&] {
      EXPECT_EQ(ue::workers(), ue::workers(rt()));
      check(ue::workers());
    });
    check(ue::workers(rt()));
  }
  EXPECT_THROW((void)ue::workers(), std::system_error) << "no runtime";
}

TEST_P(Execution, SchedulersReportARuntimeThatHasEnded) {
  runtime& ended = make(1);
  const auto on = ue::workers(ended);
  end(ended, shutdown_mode::drain);
  EXPECT_THROW(ue::wait(on.schedule()), usage_error);
  EXPECT_FALSE(ue::wait(on.as_jobs().schedule()));
}

// Of an operation that is to complete with set_stopped.
struct stopped_receiver {
  using receiver_concept = mini::receiver_tag;
  mini::inplace_stop_source* of;
  event* stopped;
  void set_value() noexcept { ADD_FAILURE(); }
  void set_error(std::exception_ptr) noexcept { ADD_FAILURE(); }
  void set_stopped() noexcept { stopped->set(); }
  struct environment {
    mini::inplace_stop_source* of;
    auto query(mini::get_stop_token_t) const noexcept { return of->get_token(); }
  };
  environment get_env() const noexcept { return {of}; }
};

TEST_P(Execution, AStopBeforeTheStartCompletesSchedulers) {
  run([] {
    mini::inplace_stop_source source;
    source.request_stop();
    const auto expect_stopped = [&](auto sender) {
      event stopped;
      auto operation = mini::connect(sender, stopped_receiver{&source, &stopped});
      mini::start(operation);
      stopped.wait();
    };
    expect_stopped(ue::workers().schedule());
    expect_stopped(ue::workers().as_jobs().schedule());
    expect_stopped(ue::spawn_sender(ue::workers(), [] { ADD_FAILURE(); }));
  });
}

TEST_P(Execution, SpawnSenderGivesTheOutcomeOfAFiber) {
  run([] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(std::get<0>(*ue::wait(ue::spawn_sender(ue::workers(),
                                                       [] {
                                                         this_fiber::sleep_for(1us);
                                                         return std::make_unique<int>(4);
                                                       })))
                    .operator*(),
                4);
      EXPECT_TRUE(ue::wait(ue::spawn_sender(ue::workers(), [] {})));
      EXPECT_THROW(ue::wait(ue::spawn_sender(ue::workers(), [] { throw std::runtime_error("f"); })),
                   std::runtime_error);
      // Neither was this fiber asked to stop, nor has its deadline passed.
      EXPECT_THROW(ue::wait(ue::spawn_sender(ue::workers(), [] { throw operation_cancelled(); })), operation_cancelled);
    }
    EXPECT_THROW(ue::wait(ue::spawn_sender(ue::workers(), [] { timeout(1us, [] { this_fiber::sleep_for(1h); }); })),
                 deadline_exceeded);
  });
}

TEST_P(Execution, AStopReachesWhatFollowsAFunction) {
  runtime& ends = make(GetParam());
  auto waits = spawn_until_it_waits(
      ends, [] { ue::wait(ue::spawn_sender(ue::workers(), [] {}) | mini::then([] { this_fiber::sleep_for(1h); })); });
  EXPECT_EQ(end(ends, shutdown_mode::cancel), 0u);
  EXPECT_THROW(waits.get(), operation_cancelled);
}

TEST_P(Execution, WaitStartsNothingWhereItMayNotWait) {
  run([] {
    const no_suspend_scope stays;
    EXPECT_THROW(ue::wait(ue::spawn_sender(ue::workers(), [] { ADD_FAILURE(); })), usage_error);
  });
}

// Completes with the scheduler of the receiver that Query gives.
template <class Query>
struct read_scheduler : mini::sender_of<mini::set_value_t(ue::fiber_scheduler)> {
  template <class R>
  struct operation {
    R to;
    void start() noexcept {
      const auto given = Query()(mini::get_env(to));
      mini::set_value(std::move(to), given);
    }
  };
  template <class R>
  operation<R> connect(R to) const {
    return {std::move(to)};
  }
};

TEST_P(Execution, TheReceiverKnowsTheWorkersOfTheWaiter) {
  run([] {
    EXPECT_EQ(std::get<0>(*ue::wait(read_scheduler<mini::get_scheduler_t>())), ue::workers());
    EXPECT_EQ(std::get<0>(*ue::wait(read_scheduler<mini::get_start_scheduler_t>())), ue::workers());
    EXPECT_EQ(std::get<0>(*ue::wait(read_scheduler<mini::get_delegation_scheduler_t>())), ue::workers());
  });
}

TEST_P(Execution, AStopOfTheWaitingFiberStopsTheOperation) {
  std::atomic<bool> ended{false};
  expect_stop_ends(rt(), [&] { ue::wait(ue::spawn_sender(ue::workers(), [&] { sleep_until_stopped(ended); })); });
  EXPECT_TRUE(ended) << "its end was waited for";
  expect_stop_forbids(rt(), [] { ue::wait(mini::just()); });
}

TEST_P(Execution, AStopDoesNotLoseAValueOrAnError) {
  event go;
  const auto give = [&](bool value) {
    const shield finishes;
    go.wait();
    return value ? 5 : throw std::runtime_error("late");
  };
  for (const bool value : {true, false}) {
    auto waits = spawn_until_it_waits(
        rt(), [&] { return std::get<0>(*ue::wait(ue::spawn_sender(ue::workers(), [&] { return give(value); }))); });
    waits.request_stop();
    wait_until_all_wait(rt());
    EXPECT_FALSE(waits.done());
    go.set();
    if (value) {
      EXPECT_EQ(waits.get(), 5);
    } else {
      EXPECT_THROW(waits.get(), std::runtime_error);
    }
    go.reset();
  }
}

TEST_P(Execution, ADeadlineOfTheWaiterStopsTheOperation) {
  std::atomic<bool> ended{false};
  const auto late = [&] {
    const deadline_scope limit(1ms);
    EXPECT_THROW(ue::wait(ue::spawn_sender(ue::workers(rt()), [&] { sleep_until_stopped(ended); })), deadline_exceeded);
    EXPECT_TRUE(ended.exchange(false));
  };
  run(late);
  late();  // on a plain thread
}

struct late_stopped : mini::sender_of<mini::set_value_t(), mini::set_stopped_t()> {
  template <class R>
  struct operation {
    R to;
    void start() noexcept {
      std::this_thread::sleep_for(2ms);  // the waiter has not waited yet
      mini::set_stopped(std::move(to));
    }
  };
  template <class R>
  operation<R> connect(R to) const {
    return {std::move(to)};
  }
};

// The operation's fiber has inherited the deadline, and completes with set_stopped before the waiter's own deadline has
// ended its wait.
TEST_P(Execution, AnOperationThatMeetsTheDeadlineFirstIsADeadlineToo) {
  run([] {
    const deadline_scope limit(1ms);
    EXPECT_THROW(ue::wait(late_stopped()), deadline_exceeded);
  });
  for (int i = 0; i < 50; ++i)
    run([] {
      const deadline_scope limit(100us);
      EXPECT_THROW(ue::wait(ue::spawn_sender(ue::workers(), [] { this_fiber::sleep_for(1h); })), deadline_exceeded);
    });
}

int nested_waits(int depth) {
  if (depth == 0) return 0;
  return 1 + std::get<0>(*ue::wait(ue::workers().schedule() | mini::then([=] { return nested_waits(depth - 1); })));
}

TEST_P(Execution, WaitsNestAtAnyDepth) {
  EXPECT_EQ(run([] { return nested_waits(50); }), 50);
}

TEST_P(Execution, ManyWaitAndStopAtOnce) {
  run([] {
    std::vector<join_handle<int>> all;
    for (int i = 0; i < 200; ++i)
      all.push_back(spawn([i] {
        int sum = 0;
        for (int k = 0; k < 10; ++k) {
          sum += std::get<0>(*ue::wait(ue::workers().schedule() | mini::then([] { return 1; })));
          sum += std::get<0>(*ue::wait(ue::workers().as_jobs().schedule() | mini::then([] { return 1; })));
        }
        if (i % 2 == 0) ue::wait(ue::spawn_sender(ue::workers(), [] { this_fiber::sleep_for(1h); }));
        return sum;
      }));
    for (std::size_t i = 0; i < all.size(); i += 2) all[i].request_stop();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % 2 == 0) {
        EXPECT_THROW(all[i].get(), operation_cancelled);
      } else {
        EXPECT_EQ(all[i].get(), 20);
      }
    }
  });
}

TEST_P(Execution, TheEndOfTheRuntimeEndsWaits) {
  runtime& ends = make(GetParam());
  auto waits =
      spawn_until_it_waits(ends, [] { ue::wait(ue::spawn_sender(ue::workers(), [] { this_fiber::sleep_for(1h); })); });
  EXPECT_EQ(end(ends, shutdown_mode::cancel), 0u);
  EXPECT_THROW(waits.get(), operation_cancelled);
}

task<int> awaits_senders() {
  const auto mine = this_fiber::id();
  const auto on = ue::workers();
  int n = co_await ue::awaitable(on.schedule() | mini::then([] {
                                   this_fiber::sleep_for(1us);
                                   return 2;
                                 }));
  n += co_await ue::awaitable(mini::just(3));
  co_await ue::awaitable(on.as_jobs().schedule());
  const auto [a, b] = co_await ue::awaitable(mini::just(1, 2));
  n += a + b;
  n += *co_await ue::awaitable(ue::spawn_sender(on, [] { return std::make_unique<int>(1); }));
  EXPECT_EQ(this_fiber::id(), mine);
  bool thrown = false, stopped = false;
  try {
    (void)co_await ue::awaitable(on.schedule() | mini::then([]() -> int { throw std::runtime_error("then"); }));
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  try {
    co_await ue::awaitable(mini::just_stopped());
  } catch (const operation_cancelled&) {
    stopped = true;
  }
  EXPECT_TRUE(thrown && stopped);
  co_return n;
}

TEST_P(Execution, ATaskAwaitsSenders) {
  run([] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(spawn(awaits_senders).get(), 9);
      EXPECT_EQ(await(awaits_senders()), 9) << "in a fiber";
    }
  });
}

}  // namespace
