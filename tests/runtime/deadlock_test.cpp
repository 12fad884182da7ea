// Deadlocks, and states that only look like one. In programs without a thread of their own, as no fixture's watchdog is
// here: with a thread that could help nothing is certain.

#include <ulexite.hpp>
#include <ulexite/base/atomics.hpp>
#include <ulexite/os/process.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <thread>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;

constexpr auto longer_than_the_silence = 450ms;

class Deadlock : public testing::TestWithParam<std::size_t> {
 protected:
  // Runs `body` in a runtime that fails with a deadlock; what was reported.
  std::string report_of(const std::function<void()>& body) {
    runtime rt({.threads = GetParam(), .on_deadlock = deadlock_action::fail});
    testing::internal::CaptureStderr();
    failed_ = false;
    try {
      rt.run(body);
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), errc::deadlock);
      failed_ = true;
    }
    return testing::internal::GetCapturedStderr();
  }
  bool failed_ = false;
};
INSTANTIATE_TEST_SUITE_P(Workers, Deadlock, testing::Values(1, 4), testing::PrintToStringParamName());

TEST_P(Deadlock, EndsTheRunWithAnErrorAndAReport) {
  const std::string report = report_of([] {
    channel<int> values;
    spawn({.name = "reader"}, [&] { values.receive(); }).join();
  });
  EXPECT_TRUE(failed_);
  EXPECT_NE(report.find("deadlock: every fiber waits"), std::string::npos);
  EXPECT_NE(report.find("\"reader\": waits"), std::string::npos);
}

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// The worker then has a thread that was lent to it. The check is early if its earlier thread has ended.
TEST_P(Deadlock, IsFoundAfterAFiberHasBlockedInPlace) {
  const std::string report = report_of([] {
    block_in_place([] {});
    EXPECT_EQ(current_runtime().metrics().blocking_threads, 0U);
    // Beside the workers there are this test's thread and the monitor. A sanitizer may have a thread of its own.
    for (int i = 0; i < 1000 && threads_of_process() > current_runtime().metrics().workers + 2; ++i)
      this_fiber::sleep_for(std::chrono::milliseconds(1));
    channel<int> values;
    values.receive();
  });
  EXPECT_TRUE(failed_);
  EXPECT_NE(report.find("deadlock: every fiber waits"), std::string::npos);
}

// At the first check that thread may still help.
TEST_P(Deadlock, IsFoundAfterAThreadOutsideHasEnded) {
  std::jthread outside;
  const std::string report = report_of([&] {
    outside = std::jthread([] { std::this_thread::sleep_for(longer_than_the_silence); });
    channel<int> values;
    values.receive();
  });
  EXPECT_TRUE(failed_);
  EXPECT_NE(report.find("deadlock: every fiber waits"), std::string::npos);
}

TEST_P(Deadlock, IsLeftAloneIfThatIsWanted) {
  runtime rt({.threads = GetParam(), .on_deadlock = deadlock_action::ignore});
  testing::internal::CaptureStderr();
  std::jthread helper;
  event done;
  rt.run([&] {
    helper = std::jthread([&] {
      std::this_thread::sleep_for(longer_than_the_silence);
      done.set();
    });
    done.wait();
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// The end of the waits comes later than the check for a deadlock.
class NoDeadlock : public Deadlock {};
INSTANTIATE_TEST_SUITE_P(Workers, NoDeadlock, testing::Values(1, 4), testing::PrintToStringParamName());

TEST_P(NoDeadlock, WhileAFiberSleeps) {
  const std::string report = report_of([] {
    channel<int> values;
    spawn([&] {
      this_fiber::sleep_for(longer_than_the_silence);
      values.send(1);
    }).detach();
    values.receive();
  });
  EXPECT_FALSE(failed_);
  EXPECT_EQ(report, "");
}

TEST_P(NoDeadlock, WhileAWaitHasATimeLimit) {
  const std::string report = report_of([] {
    channel<int> values;
    int value = 0;
    EXPECT_EQ(values.receive_for(value, longer_than_the_silence), channel_status::timeout);
  });
  EXPECT_FALSE(failed_);
  EXPECT_EQ(report, "");
}

TEST_P(NoDeadlock, WhileACallBlocks) {
  const std::string report = report_of([] {
    channel<int> values;
    spawn([&] {
      blocking([] { std::this_thread::sleep_for(longer_than_the_silence); });
      values.send(1);
    }).detach();
    values.receive();
  });
  EXPECT_FALSE(failed_);
  EXPECT_EQ(report, "");
}

TEST_P(NoDeadlock, WhileAFiberBlocksInPlace) {
  const std::string report = report_of([] {
    channel<int> values;
    spawn([&] {
      block_in_place([] { std::this_thread::sleep_for(longer_than_the_silence); });
      values.send(1);
    }).detach();
    values.receive();
  });
  EXPECT_FALSE(failed_);
  EXPECT_EQ(report, "");
}

TEST_P(NoDeadlock, WhileAThreadCouldHelp) {
  channel<int> values;
  std::jthread helper([&] {
    std::this_thread::sleep_for(longer_than_the_silence);
    values.send(1);
  });
  const std::string report = report_of([&] { values.receive(); });
  EXPECT_FALSE(failed_);
  EXPECT_EQ(report, "");
}

TEST_P(NoDeadlock, WhileAnotherRuntimeCouldHelp) {
  channel<int> values;
  runtime other({.threads = 1});
  auto sender = other.spawn([&] {
    this_fiber::sleep_for(longer_than_the_silence);
    values.send(1);
  });
  const std::string report = report_of([&] { values.receive(); });
  EXPECT_FALSE(failed_);
  EXPECT_EQ(report, "");
  sender.join();
}

TEST_P(NoDeadlock, WhileADescriptorIsWaitedFor) {
  const std::string report = report_of([] {
    net::tcp_listener listener(net::endpoint::parse("127.0.0.1:0"));
    auto accepting = spawn([&] { listener.accept(); });
    os::output_of({.arguments = {"sleep", "0.45"}});  // waits for the other end of a pipe, and then for the process
    net::tcp_stream::connect(listener.local_endpoint());
    accepting.join();
  });
  EXPECT_FALSE(failed_);
  EXPECT_EQ(report, "");
}

TEST_P(NoDeadlock, OfACircleThatARequestToStopEnds) {
  report_of([] {
    mutex first, second;
    latch both(2);
    auto one = spawn([&] {
      const std::lock_guard held(first);
      both.arrive_and_wait();
      std::error_code error;
      EXPECT_FALSE(detail::acquire(second, error));
    });
    auto other = spawn([&] {
      const std::lock_guard held(second);
      both.arrive_and_wait();
      const std::lock_guard too(first);
    });
    this_fiber::sleep_for(longer_than_the_silence);
    one.request_stop();
    one.join();
    other.join();
  });
  EXPECT_FALSE(failed_);
}

// It is found although another fiber is not part of it, and would run again.
TEST_P(Deadlock, OfACircleIsFoundWhileOthersSleep) {
  static mutex first, second, third, fourth;  // held for ever
  const auto circle = GetParam() == 1 ? std::pair(&first, &second) : std::pair(&third, &fourth);
  runtime rt({.threads = GetParam(), .on_deadlock = deadlock_action::fail});
  testing::internal::CaptureStderr();
  EXPECT_THROW(rt.run([&] {
    latch both(2);
    const auto lock_both = [&both](mutex& one, mutex& other) {
      one.lock();
      both.arrive_and_wait();
      other.lock();
    };
    spawn(lock_both, std::ref(*circle.first), std::ref(*circle.second)).detach();
    spawn(lock_both, std::ref(*circle.second), std::ref(*circle.first)).detach();
    this_fiber::sleep_for(1h);
  }),
               std::system_error);
  rt.shutdown(shutdown_mode::abandon);
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("deadlock: fibers wait for each other in a circle"), std::string::npos) << report;
}

}  // namespace
