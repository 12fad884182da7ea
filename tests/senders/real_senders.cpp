// interop/execution.hpp with a real library of senders, which CMake has found: stdexec or beman::execution. What it
// promises is tested with a small library of its own (tests/interop/execution_test.cpp); here it meets the algorithms
// of the real ones.

#include "support/waiting.hpp"

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>
#include <ulexite/interop/execution.hpp>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;
namespace ue = ulexite::execution;
namespace ex = ULEXITE_SENDERS;

static_assert(ex::scheduler<ue::fiber_scheduler> && ex::scheduler<ue::job_scheduler>);
static_assert(ex::sender<decltype(ue::workers().schedule())>);

class RealSenders : public WorkersTest {};
ULEXITE_TEST_WORKERS(RealSenders);

TEST_P(RealSenders, WaitReturnsTheValues) {
  run([] {
    EXPECT_EQ(std::get<0>(*ue::wait(ex::just(3))), 3);
    const auto [number, text] = *ue::wait(ex::just(1, std::string("x")));
    EXPECT_EQ(number, 1);
    EXPECT_EQ(text, "x");
    EXPECT_FALSE(ue::wait(ex::just_stopped()));
    EXPECT_THROW(ue::wait(ex::just_error(std::make_error_code(std::errc::broken_pipe)) |
                          ex::let_value([] { return ex::just(); })),
                 std::system_error);
  });
}

TEST_P(RealSenders, TheSchedulersRunFibersAndJobs) {
  const auto [in] = *ue::wait(ex::schedule(ue::workers(rt())) | ex::then([] { return in_fiber(); }));  // a plain thread
  EXPECT_TRUE(in);
  run([] {
    const auto fibers = ue::workers();
    const auto [slept] = *ue::wait(ex::schedule(fibers) | ex::then([] {
                                     this_fiber::sleep_for(1ms);
                                     return in_fiber();
                                   }));
    EXPECT_TRUE(slept);
    const auto [in_job] = *ue::wait(ex::schedule(fibers.as_jobs()) | ex::then([] { return !in_fiber(); }));
    EXPECT_TRUE(in_job);
    EXPECT_THROW(ue::wait(ex::schedule(fibers) | ex::then([]() -> int { throw std::runtime_error("failed"); })),
                 std::runtime_error);
  });
}

TEST_P(RealSenders, AlgorithmsComposeThem) {
  run([] {
    const auto fibers = ue::workers();
    const auto [a, b] =
        *ue::wait(ex::when_all(ex::starts_on(fibers, ex::just(1)), ex::starts_on(fibers.as_jobs(), ex::just(2))));
    EXPECT_EQ(a + b, 3);
    const auto [n] = *ue::wait(ex::just(1) | ex::continues_on(fibers) | ex::then([](int k) { return k + in_fiber(); }) |
                               ex::let_value([](auto&& k) { return ex::just(k * 10); }));
    EXPECT_EQ(n, 20);
#if !defined(BEMAN)  // whose on does not compile for a sender that can be stopped
    const auto [back] = *ue::wait(ex::on(fibers, ex::just(1) | ex::then([](int k) { return k + in_fiber(); })));
    EXPECT_EQ(back, 2);
#endif
    const auto [own] = *ue::wait(ex::let_value(
        ex::read_env(ex::get_scheduler), [](auto s) { return ex::schedule(s) | ex::then([] { return in_fiber(); }); }));
    EXPECT_TRUE(own);
    std::atomic<int> sum{0};
    ue::wait(ex::schedule(fibers) | ex::bulk(ex::par, 10, [&](int i) { sum += i; }));
    EXPECT_EQ(sum, 45);
  });
}

TEST_P(RealSenders, ATaskIsASender) {
  const auto where = [](int n) -> task<std::pair<int, std::uint64_t>> {
    co_await co_sleep_for(1us);
    co_return std::pair(n, this_fiber::id());
  };
  const auto fail = []() -> task<> {
    co_await co_yield_now();
    throw std::runtime_error("failed");
  };
  run([&] {
    const auto here = std::get<0>(*ue::wait(where(1)));
    EXPECT_EQ(here, std::pair(1, this_fiber::id()));
    const auto [there] = *ue::wait(ex::starts_on(ue::workers(), where(2)) | ex::then([](auto found) { return found; }));
    EXPECT_EQ(there.first, 2);
    EXPECT_NE(there.second, here.second);
    EXPECT_THROW(ue::wait(ex::starts_on(ue::workers(), fail())), std::runtime_error);
  });
}

// The operation is asked to stop too, and its end is waited for.
TEST_P(RealSenders, AStopAndADeadlineOfTheWaiterReachTheOperation) {
  std::atomic<int> ended{0};
  const auto sleep = [&] {
    try {
      this_fiber::sleep_for(1h);
    } catch (const operation_cancelled&) {
      const shield cleans_up;
      this_fiber::sleep_for(1ms);
      ++ended;
      throw;
    }
  };
  expect_stop_ends(rt(), [&] { ue::wait(ue::spawn_sender(ue::workers(), sleep)); });
  EXPECT_EQ(ended, 1);
  run([&] {
    EXPECT_THROW(timeout(2ms, [&] { ue::wait(ue::spawn_sender(ue::workers(), sleep)); }), deadline_exceeded);
    EXPECT_EQ(ended, 2);
    const auto fail = [] {
      this_fiber::sleep_for(1ms);
      throw std::runtime_error("first");
    };
    EXPECT_THROW(ue::wait(ex::when_all(ue::spawn_sender(ue::workers(), sleep), ue::spawn_sender(ue::workers(), fail))),
                 std::runtime_error);
    EXPECT_EQ(ended, 3);
  });
}

// Waits on their own workers, at any depth.
TEST_P(RealSenders, NestedWaitsDoNotDeadlock) {
  run([] {
    const auto deep = [](auto& self, int n) -> int {
      if (n == 0) return 0;
      return 1 + std::get<0>(*ue::wait(ex::schedule(ue::workers()) | ex::then([&] { return self(self, n - 1); })));
    };
    EXPECT_EQ(deep(deep, 50), 50);
  });
}

}  // namespace
