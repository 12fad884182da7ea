// explore_options::slowness: which timers may fire while fibers can run.

#include <ulexite.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <functional>
#include <utility>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
using ulexite::testing::expect;
using ulexite::testing::find_failure;
using ulexite::testing::point;

// A jump to 3 ms allows the timers up to 8 ms, although it stays in the window of the start.
TEST(Slowness, CountsFromEachMomentWhenNothingCanRun) {
  const auto body = [] {
    bool late = false;
    task_group timer;
    timer.spawn([&] {
      this_fiber::sleep_for(7ms);
      late = true;
    });
    this_fiber::sleep_for(3ms);
    point();
    expect(!late, "the timer is not due yet");
    timer.wait();
  };
  EXPECT_TRUE(find_failure({.schedules = 500, .slowness = 5ms}, body).failure);
  EXPECT_FALSE(find_failure({.schedules = 500, .slowness = 3ms}, body).failure);
}

// Timers that overtake a fiber begin no new window. Otherwise they could overtake it without an end.
TEST(Slowness, EndsForAFiberThatCanRun) {
  const auto found = find_failure({.schedules = 500, .slowness = 5ms}, [] {
    const auto begin = steady_clock::now();
    bool done = false;
    task_group timer;
    timer.spawn([&] {
      while (!done) this_fiber::sleep_for(1ms);
    });
    for (int i = 0; i < 100; ++i) point();
    expect(steady_clock::now() - begin <= 5ms, "a window");
    done = true;
    timer.wait();
  });
  EXPECT_FALSE(found.failure) << found.failure->report;
}

TEST(Slowness, TimeNeedNotPassForAFiberThatYieldsAlone) {
  const auto find_time_after_yield = [](steady_clock::duration wanted) {
    return find_failure({.schedules = 500, .slowness = 5ms}, [=] {
      const auto begin = steady_clock::now();
      bool timer_set = false;
      task_group timer;
      timer.spawn([&] {
        timer_set = true;
        this_fiber::sleep_for(2ms);
      });
      this_fiber::sleep_for(1ms);
      const bool alone = timer_set;
      this_fiber::yield();
      expect(!alone || steady_clock::now() - begin != wanted, "the time after the yield");
      timer.wait();
    });
  };
  EXPECT_TRUE(find_time_after_yield(1ms).failure);
  EXPECT_TRUE(find_time_after_yield(2ms).failure);
}

TEST(Slowness, MayBeTheLargestTime) {
  const auto found = find_failure({.schedules = 500, .slowness = std::chrono::nanoseconds::max()}, [] {
    channel<int> numbers;
    task_group senders;
    senders.spawn([&] {
      int one = 1;
      static_cast<void>(numbers.send_for(one, 1h));
    });
    int number = 0;
    const bool in_time = numbers.receive_for(number, 1ms) == channel_status::ok;
    senders.wait();
    expect(in_time, "too late");
  });
  EXPECT_TRUE(found.failure);
}

// Asks once for what three fibers need. Wrong: between the two looks the answer of the first may arrive.
void ask_once(const std::function<void()>& ask) {
  mutex m;
  bool answered = false, asking = false;
  int asked = 0;
  event answer;
  const auto get = [&] {
    {
      const std::lock_guard lock(m);
      if (answered) return;
    }
    bool first = false;
    {
      const std::lock_guard lock(m);
      first = !std::exchange(asking, true);
    }
    if (!first) return answer.wait();
    ++asked;
    ask();
    const std::lock_guard lock(m);
    answered = true;
    asking = false;
    answer.set();
  };
  task_group all;
  for (int i = 0; i < 3; ++i) all.spawn(get);
  all.wait();
  expect(asked == 1, "one question");
}

void ask_a_server() {
  const auto at = net::endpoint::parse("10.0.0.1:53");
  net::tcp_listener listener(at);
  task_group server;
  server.spawn([&] {
    task_group clients;
    listener.serve(clients, [](net::tcp_stream& client) {
      char request = 0;
      while (client.read(&request, 1) == 1) client.write(&request, 1);
    });
  });
  ask_once([&] {
    auto stream = net::tcp_stream::connect(at);
    stream.write("a");
    char answer = 0;
    stream.read(&answer, 1);
  });
  listener.close();
  server.wait();
}

TEST(Slowness, IsAPartOfTheMixedStrategy) {
  const auto asleep = [] { ask_once([] { this_fiber::sleep_for(1ms); }); };
  const auto found = find_failure({}, asleep);
  ASSERT_TRUE(found.failure);
  EXPECT_TRUE(find_failure({.replay = found.failure->replay}, asleep).failure);
  EXPECT_FALSE(find_failure({.slowness = 0ns}, asleep).failure);
  EXPECT_FALSE(find_failure({.strategy = "random"}, asleep).failure);
}

TEST(Slowness, OfTheMixedStrategyIsLongerThanTheWayOfAMessage) {
  EXPECT_TRUE(find_failure({.network = {.latency = 1ms}}, ask_a_server).failure);
  EXPECT_TRUE(find_failure({.network = {.latency = 20ms, .jitter = 50ms}}, ask_a_server).failure);
}

TEST(Slowness, OfTheMixedStrategyEndsNoTimeLimitOfSeconds) {
  const auto found = find_failure({}, [] {
    channel<int> numbers;
    task_group sender;
    sender.spawn([&] {
      for (int i = 0; i < 10; ++i) point();
      numbers.send(1);
    });
    int number = 0;
    expect(numbers.receive_for(number, 1s) == channel_status::ok, "in time");
    sender.wait();
  });
  EXPECT_FALSE(found.failure);
}

}  // namespace
