// How long fibers wait for a worker and then run, and the metrics of that.

#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/auto_reset_event.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>

#include <atomic>
#include <regex>
#include <sstream>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using namespace std::chrono_literals;

void compute_for(std::chrono::nanoseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

// Those of the times that were certainly longer.
std::uint64_t longer_than(std::chrono::nanoseconds time, const duration_histogram& of) {
  std::uint64_t sum = 0;
  for (std::size_t i = 1; i < duration_histogram::size; ++i)
    if (duration_histogram::bound(i - 1) >= time) sum += of.counts[i];
  return sum;
}

std::string prometheus(const runtime& rt, const prometheus_options& options = {}) {
  std::ostringstream text;
  rt.write_prometheus(text, options);
  return text.str();
}

std::uint64_t value_of(const std::string& name, const std::string& text) {
  std::smatch found;
  const bool is_there = std::regex_search(text, found, std::regex("(?:^|\n)" + name + " (\\d+)"));
  EXPECT_TRUE(is_there) << name << " in " << text;
  return is_there ? std::stoull(found[1]) : 0;
}

class Times : public RuntimeTest, public testing::WithParamInterface<std::size_t> {
 protected:
  runtime& rt_ = make({.threads = GetParam(), .measure = true});
};
INSTANTIATE_TEST_SUITE_P(Workers, Times, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(Times, CountEachRun) {
  rt_.run([] {
    task_group all;
    for (int i = 0; i < 100; ++i) all.spawn([] { this_fiber::yield(); });
    all.wait();
  });
  end(rt_, shutdown_mode::drain);  // so that the last run of each worker has ended
  EXPECT_EQ(rt_.times().run.count(), rt_.metrics().dispatches);
  EXPECT_GE(rt_.times().queue_delay.count(), 101U);  // who yields alone waits for no worker
}

TEST_P(Times, HaveTheDelayOfWhatOthersKeepWaiting) {
  rt_.run([] {
    task_group all;
    all.spawn_batch(GetParam() + 1, [](std::size_t) { compute_for(34ms); });  // all begin to wait before the first ends
    all.wait();
  });
  end(rt_, shutdown_mode::drain);  // so that the last run of each worker has ended
  EXPECT_GE(longer_than(16ms, rt_.times().queue_delay), 1U) << to_string(rt_.times());  // there is one fiber too many
  EXPECT_GE(longer_than(16ms, rt_.times().run), GetParam() + 1) << to_string(rt_.times());
  EXPECT_GE(rt_.times().run.sum, 34ms * (GetParam() + 1));
  EXPECT_GE(rt_.times().run.within(1), 34ms);
}

TEST_P(Times, CountWhatThreadsTimersAndFibersWake) {
  const auto count = [this] { return rt_.times().queue_delay.count(); };
  rt_.run([&] {
    const auto before = count();
    while (count() == before) this_fiber::sleep_for(1ms);  // a timer may fire before the switch, which is no wait
    event done;
    std::thread outside([&] { done.set(); });
    done.wait();
    outside.join();
    auto_reset_event ping, pong;
    const auto between = count();
    std::atomic<bool> enough{false};
    auto other = spawn([&] {
      for (ping.wait(); !enough; ping.wait()) pong.set();
    });
    while (count() < between + 10) {
      ping.set();
      pong.wait();
    }
    enough = true;
    ping.set();
    other.join();
  });
}

TEST_P(Times, ArePartOfTheMetrics) {
  rt_.run([] { spawn([] {}).join(); });
  wait_until([&] { return rt_.times().run.count() >= 2; });  // a worker may note the end of a run later
  const std::string text = prometheus(rt_);
  EXPECT_EQ(value_of("ulexite_run_seconds_count", text),
            value_of("ulexite_run_seconds_bucket\\{le=\"\\+Inf\"\\}", text));
  EXPECT_LE(value_of("ulexite_run_seconds_bucket\\{le=\"0.000000128\"\\}", text),
            value_of("ulexite_run_seconds_bucket\\{le=\"8.589934592\"\\}", text));
  EXPECT_NE(text.find("# TYPE ulexite_queue_delay_seconds histogram\n"), std::string::npos) << text;
  const std::string_view sum = "\nulexite_queue_delay_seconds_sum ";
  const auto at = text.find(sum);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_LE(std::stod(text.substr(at + sum.size())),
            std::chrono::duration<double>(rt_.times().queue_delay.sum).count() + 1e-6);  // in seconds
  const std::string lines = to_string(rt_.times());
  EXPECT_GE(value_of("run_count", lines), 1U);
  EXPECT_GE(value_of("run_p99_ns", lines), value_of("run_p50_ns", lines));
}

TEST_P(Times, GoOnWhenATraceEnds) {
  const auto runs_while = [this](auto&& running) {
    const auto before = rt_.times().queue_delay.count();
    rt_.run(running);
    return rt_.times().queue_delay.count() - before;
  };
  const auto spawn_some = [] {
    for (int i = 0; i < 10; ++i) spawn([] {}).join();
  };
  rt_.start_trace();
  EXPECT_GE(runs_while(spawn_some), 10U);
  rt_.stop_trace();
  EXPECT_GE(runs_while(spawn_some), 10U);
}

class TimesOfATrace : public WorkersTest {};
INSTANTIATE_TEST_SUITE_P(Workers, TimesOfATrace, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(TimesOfATrace, AreCountedWhileItIsOn) {
  runtime& rt = this->rt();
  const auto spawn_some = [] {
    for (int i = 0; i < 10; ++i) spawn([] {}).join();
  };
  rt.run(spawn_some);
  EXPECT_EQ(rt.times().run.count(), 0U);
  EXPECT_EQ(prometheus(rt).find("ulexite_run_seconds"), std::string::npos);
  rt.start_trace();
  rt.run(spawn_some);
  rt.stop_trace();
  const std::uint64_t counted = rt.times().queue_delay.count();
  EXPECT_GE(counted, 10U);
  rt.run(spawn_some);
  EXPECT_EQ(rt.times().queue_delay.count(), counted);
}

TEST(DurationHistogram, TellsTheBoundThatAPartKeeps) {
  duration_histogram times;
  EXPECT_EQ(times.within(0.5), 0ns);
  times.counts[0] = 50;
  times.counts[3] = 49;
  times.counts[duration_histogram::size - 1] = 1;
  EXPECT_EQ(times.count(), 100U);
  EXPECT_EQ(times.within(0.5), 128ns);
  EXPECT_EQ(times.within(0.51), 1024ns);
  EXPECT_EQ(times.within(0.99), 1024ns);
  EXPECT_EQ(times.within(1), duration_histogram::bound(duration_histogram::size - 2));
}

class LongWaits : public WorkersTest {
 protected:
  // Waits until the text has `words`; the watchdog bounds the wait.
  static std::string gauges_with(const runtime& rt, const prometheus_options& options, const std::string& words) {
    for (;;) {
      const std::string text = prometheus(rt, options);
      if (text.find(words) != std::string::npos) return text;
      this_fiber::sleep_for(1ms);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, LongWaits, testing::Values(1, 2, 8), testing::PrintToStringParamName());

// Waits with a backtrace that each bit of `path` changes.
void wait_below(unsigned path, unsigned depth, event& until);
[[gnu::noinline]] void wait_on_the_left(unsigned path, unsigned depth, event& until) {
  wait_below(path, depth, until);
  asm volatile("");  // no tail call
}
[[gnu::noinline]] void wait_on_the_right(unsigned path, unsigned depth, event& until) {
  wait_below(path, depth, until);
  asm volatile("");
}
void wait_below(unsigned path, unsigned depth, event& until) {
  if (depth == 0) return until.wait();
  (path % 2 == 0 ? wait_on_the_left : wait_on_the_right)(path / 2, depth - 1, until);
}

TEST_P(LongWaits, OfManyBacktracesAreAllCounted) {
  runtime& rt = this->rt();
  rt.run([&] {
    constexpr unsigned bits = 9;
    event enough;
    task_group all;
    for (unsigned path = 0; path < 1U << bits; ++path) all.spawn([&, path] { wait_below(path, bits, enough); });
    gauges_with(rt, {.long_wait = 2ms}, ")\"} 512\n");
    enough.set();
    all.wait();
  });
}

TEST_P(LongWaits, AreCountedByTheirPlaces) {
  runtime& rt = this->rt();
  rt.run([&] {
    event enough;
    channel<int> values;
    task_group all;
    for (int i = 0; i < 3; ++i) all.spawn([&] { enough.wait(); });
    all.spawn([&] { values.receive(); });
    const std::string text = gauges_with(rt, {.long_wait = 2ms}, "\",waits=\"receive\"");
    gauges_with(rt, {.long_wait = 2ms}, "\"} 3\n");
    EXPECT_NE(text.find("{spawned_at=\""), std::string::npos) << text;
    EXPECT_NE(text.find("times_test.cpp:"), std::string::npos) << text;
    gauges_with(rt, {.long_wait = 2ms, .max_places = 1},
                "{spawned_at=\"other\",waits=\"other\",waits_in=\"other\"} 1\n");
    EXPECT_EQ(prometheus(rt, {.long_wait = 1h}).find("waiting_long{"), std::string::npos);
    EXPECT_EQ(prometheus(rt).find("waiting_long"), std::string::npos);
    enough.set();
    values.send(1);
    all.wait();
  });
}

}  // namespace
