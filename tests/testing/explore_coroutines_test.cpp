// Explorations of coroutines: an await is a choice as a fiber's wait is, and time is virtual.

#include "support/watchdog.hpp"

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
namespace ut = ulexite::testing;
using ut::expect;
using ut::explore;
using ut::find_failure;

const std::vector<std::string> strategies{"mixed", "random", "pct:2", "exhaustive:2"};

// Two coroutines add one to a number, each in two steps.
void lose_an_update() {
  mutex m;
  int number = 0;
  const auto add_one = [&]() -> task<> {
    int seen = 0;
    {
      const auto lock = co_await co_lock(m);
      seen = number;
    }
    const auto lock = co_await co_lock(m);
    number = seen + 1;
  };
  task_group all;
  all.spawn(add_one);
  all.spawn(add_one);
  all.wait();
  expect(number == 2, "two updates");
}

void cross_locks() {
  mutex a, b;
  const auto lock_both = [](mutex& one, mutex& other) -> task<> {
    const auto first = co_await co_lock(one);
    const auto second = co_await co_lock(other);
  };
  task_group all;
  all.spawn([&] { return lock_both(a, b); });
  all.spawn([&] { return lock_both(b, a); });
  all.wait();
}

TEST(ExploreCoroutines, EachStrategyFindsALostUpdate) {
  for (const std::string& strategy : strategies) {
    const auto found = find_failure({.strategy = strategy}, lose_an_update);
    ASSERT_TRUE(found.failure) << strategy;
    EXPECT_EQ(found.failure->reason, "expected: two updates");
  }
}

TEST(ExploreCoroutines, EachStrategyFindsADeadlockByTheOrderOfLocks) {
  for (const std::string& strategy : strategies) {
    const auto found = find_failure({.strategy = strategy}, cross_locks);
    ASSERT_TRUE(found.failure) << strategy;
    const std::string& report = found.failure->report;
    for (const char* const word :
         {"deadlock: 3 fibers wait", "circle: fiber #", "waits 0 ms for mutex", "holds 1 lock"})
      EXPECT_NE(report.find(word), std::string::npos) << word << " is not in\n" << report;
  }
}

TEST(ExploreCoroutines, ACoroutineAndAFiberDeadlockToo) {
  const auto found = find_failure({}, [] {
    channel<int> there, back;
    task_group all;
    all.spawn([&] {
      there.send(1);
      (void)back.receive();
    });
    all.spawn([&]() -> task<> {
      co_await co_send(back, 1);
      (void)co_await co_receive(there);
    });
    all.wait();
  });
  ASSERT_TRUE(found.failure);
  EXPECT_NE(found.failure->reason.find("deadlock"), std::string::npos);
}

TEST(ExploreCoroutines, ExhaustiveTriesEachOrder) {
  std::set<std::string> orders;
  const auto all = explore({.schedules = 1'000'000, .strategy = "exhaustive:3"}, [&] {
    std::string order;
    task_group both;
    for (const char who : {'a', 'b', 'c'})
      both.spawn([&, who]() -> task<> {
        order += who;
        co_return;
      });
    both.wait();
    orders.insert(order);
  });
  EXPECT_TRUE(all.exhausted);
  EXPECT_EQ(orders.size(), 6u);
}

TEST(ExploreCoroutines, AnHourPassesInNoTime) {
  const auto before = std::chrono::steady_clock::now();
  explore({.schedules = 200}, [] {
    const auto begun = ulexite::steady_clock::now();
    channel<int> never;
    task_group all;
    all.spawn([&]() -> task<> {
      int value = 0;
      EXPECT_EQ(co_await co_receive_for(never, value, 1h), channel_status::timeout);
    });
    all.spawn([&]() -> task<> { EXPECT_EQ(co_await co_select(on_receive(never), after(1h)), 1u); });
    all.spawn([]() -> task<> { co_await co_sleep_for(1h); });
    all.wait();
    expect(ulexite::steady_clock::now() - begun >= 1h, "an hour");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - before, 100s);
}

// What must hold in every schedule: correct programs, with all that a wait can end by.
TEST(ExploreCoroutines, NoScheduleLosesAValueToATimeOutOrAStop) {
  explore({.schedules = static_cast<std::size_t>(test::times(2000))}, [] {
    channel<int> values;
    int sent = 0, received = 0;
    auto sends = spawn([&]() -> task<> {
      int value = 1;
      if (co_await co_send_for(values, value, 1ms) == channel_status::ok) ++sent;
      co_await co_select(on_send(values, 1, [&] { ++sent; }), after(1ms));
    });
    auto receives = spawn([&]() -> task<> {
      for (;;)
        if (co_await co_receive(values)) ++received;
    });
    auto fiber = spawn([&] { select(on_receive(values, [&](auto) { ++received; }), after(1ms)); });
    sends.get();
    fiber.get();
    receives.request_stop();
    receives.join();
    EXPECT_THROW(receives.get(), operation_cancelled);
    expect(sent == received, "each value arrives once");
  });
}

TEST(ExploreCoroutines, NoScheduleLosesANotification) {
  explore({.schedules = static_cast<std::size_t>(test::times(2000))}, [] {
    mutex guard;
    condition_variable changed;
    int tokens = 0;
    task_group all;
    for (int i = 0; i < 2; ++i)
      all.spawn([&]() -> task<> {
        auto lock = co_await co_lock(guard);
        while (tokens == 0) co_await co_wait(changed, lock);
        --tokens;
      });
    all.spawn([&]() -> task<> {
      auto lock = co_await co_lock(guard);
      (void)co_await co_wait_for(changed, lock, 1ms);
      if (tokens > 0) changed.notify_one();
    });
    for (int i = 0; i < 2; ++i)
      all.spawn([&] {
        const std::lock_guard lock(guard);
        ++tokens;
        changed.notify_one();
      });
    all.wait();
    expect(tokens == 0, "each token was taken");
  });
}

TEST(ExploreCoroutines, EqualSeedsMakeEqualRuns) {
  const auto run_once = [] {
    std::string order;
    explore({.schedules = 50, .strategy = "random", .seed = 7}, [&] {
      task_group all;
      mutex guard;
      for (const char who : {'a', 'b', 'c'})
        all.spawn([&, who]() -> task<> {
          for (int i = 0; i < 3; ++i) {
            const auto lock = co_await co_lock(guard);
            order += who;
            co_await co_yield_now();
          }
        });
      all.wait();
    });
    return order;
  };
  EXPECT_EQ(run_once(), run_once());
}

TEST(ExploreCoroutines, SocketsOfTheSimulatedNetwork) {
  explore({.schedules = 200}, [] {
    net::tcp_listener listener(net::endpoint::parse("10.0.0.1:80"));
    auto server = spawn([&]() -> task<> {
      auto client = co_await co_accept(listener);
      char data[16];
      for (;;) {
        co_await co_readable(client);
        const std::size_t size = client.read_some(data, sizeof data);
        if (size == 0) co_return;
        co_await co_write(client, data, size);
      }
    });
    auto client = spawn([&]() -> task<> {
      auto stream = net::tcp_stream::connect(listener.local_endpoint());
      co_await co_write(stream, "hello");
      char back[5];
      EXPECT_EQ(co_await co_read(stream, back, 5), 5u);
      expect(std::string_view(back, 5) == "hello", "the echo");
    });
    client.get();
    server.get();
  });
}

}  // namespace
