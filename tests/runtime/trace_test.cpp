// The content of a trace, in its own words. That it opens in Perfetto was seen; that recording holds up beside
// everything else is dump_stress's.

#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/inspect/trace.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/parallel_invoke.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <regex>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

std::string trace_of(const runtime& rt) {
  std::ostringstream text;
  rt.write_trace(text);
  return text.str();
}

std::size_t count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<std::size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

class Trace : public WorkersTest {
 protected:
  // A hundred values from a fiber to another, each in a span.
  void exchange_values() {
    rt().run([] {
      channel<int> values;
      auto reader = spawn({.name = "the patient reader"}, [&] {
        while (const auto value = values.receive()) {
          const trace_span parse("parse");
        }
      });
      for (int i = 0; i < 100; ++i) values.send(i);
      values.close();
      reader.join();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, Trace, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(Trace, ShowsRunsSpansAndWhoWokeWhom) {
  runtime& rt = this->rt();
  rt.start_trace();
  exchange_values();
  // A worker may note the end of a fiber only after it has woken the fiber's joiner. So the workers must have ended.
  end(rt, shutdown_mode::drain);
  rt.stop_trace();
  const std::string text = trace_of(rt);
  EXPECT_GE(count(text, R"("name":"the patient reader #\d+")"), 1U) << text;
  EXPECT_GE(count(text, R"("name":"main #\d+")"), 1U);
  EXPECT_GE(count(text, R"("then":"waits to receive from channel")"), 1U);
  EXPECT_GE(count(text, R"("then":"ended")"), 1U);
  EXPECT_GE(count(text, R"("spawned at":"[^"]*trace_test.cpp:\d+ in )"), 1U);
  EXPECT_GE(count(text, R"("name":"the patient reader #[^}]*"spawned by":"main #\d+")"), 1U);
  EXPECT_EQ(count(text, R"("ph":"b"[^}]*"name":"parse")"), 100U);
  EXPECT_EQ(count(text, R"("ph":"e"[^}]*"name":"parse")"), 100U);
  EXPECT_EQ(count(text, R"("name":"thread_name")"), GetParam());
  EXPECT_GE(count(text, R"("ph":"f")"), 1U);
  EXPECT_GE(count(text, R"("ph":"s")"), count(text, R"("ph":"f")"));
  EXPECT_EQ(count(text, R"("dur":-)"), 0U);
  EXPECT_EQ(count(text, "[{]"), count(text, "[}]"));
}

TEST_P(Trace, ShowsOnlyWhatWasWhileItWasOn) {
  runtime& rt = this->rt();
  exchange_values();
  rt.start_trace();
  rt.stop_trace();
  exchange_values();
  EXPECT_EQ(count(trace_of(rt), R"("ph":"X"[^}]*reader)"), 0U);
  rt.start_trace();
  exchange_values();
  EXPECT_EQ(count(trace_of(rt), R"("ph":"b")"), 100U);  // while it is on
  rt.stop_trace();
}

// A stream over a connection, say: its fiber waits in the middle.
class waiting_stream : public std::streambuf {
 public:
  explicit waiting_stream(channel<int>& gate) : gate_(gate) {}

 private:
  int overflow(int letter) override { return letter; }
  std::streamsize xsputn(const char*, std::streamsize size) override {
    gate_.receive();
    return size;
  }
  channel<int>& gate_;
};

TEST_P(Trace, IsWrittenToAStreamThatWaits) {
  rt().start_trace();
  exchange_values();
  rt().run([this] {
    channel<int> gate;
    waiting_stream buffer(gate);
    std::ostream out(&buffer);
    auto writer = spawn([&] { rt().write_trace(out); });
    wait_until_others_wait();
    EXPECT_NE(to_string(rt().times()), "");  // needs the mutex that a writer needs for a part of its call
    rt().stop_trace();
    gate.close();
    writer.join();
  });
}

TEST_P(Trace, LetsADumpTellWhichFiberSpawnedAnother) {
  runtime& rt = this->rt();
  rt.start_trace();
  rt.run([&] {
    event enough;
    auto waiter = spawn({.name = "waiter"}, [&] { enough.wait(); });
    wait_until_others_wait();
    const std::string self = std::to_string(this_fiber::id());
    std::ostringstream text, json;
    rt.dump(text);
    rt.dump_json(json);
    EXPECT_EQ(count(text.str(), "\n  spawned by fiber #" + self + "\n"), 1U) << text.str();
    EXPECT_EQ(count(json.str(), "\"spawned_by\":" + self + "[^0-9]"), 1U) << json.str();
    enough.set();
    waiter.join();
  });
}

TEST_P(Trace, ShowsTheRunThatIsUnderWay) {
  runtime& rt = this->rt();
  rt.start_trace();
  rt.run([&] {
    EXPECT_EQ(count(trace_of(rt), R"("ph":"X"[^{]*"name":"main #\d+")"), 1U);
    rt.stop_trace();
    EXPECT_EQ(count(trace_of(rt), R"("ph":"X"[^{]*"name":"main #\d+")"), 1U);
  });
}

class TraceOfOneWorker : public RuntimeTest {};

TEST_F(TraceOfOneWorker, ShowsTheSleepThatIsUnderWay) {
  runtime& rt = make(1);
  rt.start_trace();
  rt.run([] {});
  auto& trace = detail::state_of(rt).trace;
  std::size_t sleeps = 0;
  const auto sleeps_now = [&] {
    const std::lock_guard lock(trace.mutex);
    const auto events = detail::recorded_events(detail::state_of(rt), 0);
    sleeps = static_cast<std::size_t>(std::ranges::count(events, detail::trace_kind::park, &detail::trace_event::kind));
    return !events.empty() && events.back().kind == detail::trace_kind::park;
  };
  wait_until(sleeps_now);
  EXPECT_GE(count(trace_of(rt), R"("name":"sleeps")"), sleeps);
  EXPECT_GE(sleeps, 1U);
}

class TraceOfTwoWorkers : public RuntimeTest {};

// The thief starts it, after a fiber that it ran before.
TEST_F(TraceOfTwoWorkers, ShowsNoSpawnerOfAStolenBranch) {
  runtime& rt = make(2);
  rt.start_trace();
  rt.run([&] {
    const auto self = this_fiber::id();
    std::atomic<std::uint64_t> earlier{0};
    auto first = spawn([&] { earlier = this_fiber::id(); });
    EXPECT_TRUE(hog_until([&] { return earlier != 0; }));
    first.join();
    std::atomic<int> begun{0};
    std::ostringstream text;
    const auto branch = [&] {
      ++begun;
      EXPECT_TRUE(hog_until([&] { return begun == 2; }));
      if (this_fiber::id() != self) rt.dump(text);
    };
    parallel_invoke(branch, branch);
    EXPECT_EQ(count(text.str(), "spawned by fiber #" + std::to_string(self)), 0U) << text.str();
    EXPECT_EQ(count(text.str(), "spawned by fiber #" + std::to_string(earlier)), 0U) << text.str();
  });
}

TEST_P(Trace, KeepsTheLastEvents) {
  runtime& rt = this->rt();
  rt.start_trace({.events_per_worker = 16});
  exchange_values();
  rt.stop_trace();
  const std::string text = trace_of(rt);
  EXPECT_LE(count(text, R"("ts":)"), 2 * 16 * GetParam()) << text;
}

TEST_P(Trace, CutsANameBetweenTwoCharacters) {
  runtime& rt = this->rt();
  const std::string long_name = [] {
    std::string made = "a";
    for (int i = 0; i < 16; ++i) made += "\xe8\xaa\xad";  // a character of three bytes
    return made;
  }();
  rt.start_trace();
  rt.run([&] {
    spawn({.name = long_name}, [] {}).join();
    spawn({.name = std::string(40, '\xaa')}, [] {}).join();
  });
  end(rt, shutdown_mode::drain);  // so that the ends of both are noted
  rt.stop_trace();
  const std::string text = trace_of(rt);
  EXPECT_EQ(count(text, '"' + long_name.substr(0, 34) + R"( #\d+")"), 1U) << text;
  EXPECT_EQ(count(text, R"("(\\ufffd){36} #\d+")"), 1U) << text;
}

// As on aarch64, where a place of spawn takes more than an event's 48 bits.
TEST_P(Trace, KeepsHighAddresses) {
  runtime& rt = this->rt();
  rt.start_trace();
  rt.run([] {
    const detail::spawn_place high(reinterpret_cast<const void*>(0xaaaa00001234));
    detail::spawn_in(detail::callers_runtime(), {.where = high}, [] {}).join();
  });
  end(rt, shutdown_mode::drain);
  rt.stop_trace();
  const std::string text = trace_of(rt);
  EXPECT_GE(count(text, R"("spawned at":"0xaaaa00001234")"), 1U) << text;
}

TEST_P(Trace, UsesItsMemoryAgain) {
  runtime& rt = this->rt();
  for (int i = 0; i < 10; ++i) {
    rt.start_trace({.events_per_worker = i % 2 == 0 ? 16U : 1024U});
    exchange_values();
    rt.stop_trace();
    EXPECT_EQ(count(trace_of(rt), R"("name":"thread_name")"), GetParam());
  }
  EXPECT_EQ(detail::state_of(rt).trace.recorders.size(), 2 * GetParam());
}

TEST_P(Trace, IsRefusedWhereItMakesNoSense) {
  runtime& rt = this->rt();
  std::ostringstream text;
  EXPECT_THROW(rt.write_trace(text), usage_error);
  rt.stop_trace();
  rt.start_trace();
  EXPECT_THROW(rt.start_trace(), usage_error);
  EXPECT_EQ(text.str(), "");
}

TEST_P(Trace, IsRefusedIfItIsTooLarge) {
  runtime& rt = this->rt();
  for (const std::size_t events : {trace_options::max_events + 1, std::numeric_limits<std::size_t>::max()}) {
    try {
      rt.start_trace({.events_per_worker = events});
      FAIL() << "no error";
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(events)), std::string::npos) << error.what();
    }
  }
  rt.start_trace({.events_per_worker = 16});
}

class TraceFile : public RuntimeTest {
 protected:
  ~TraceFile() override { ::unsetenv("ULEXITE_TRACE"); }
};

TEST_F(TraceFile, IsWrittenAtTheEnd) {
  const auto file = std::filesystem::temp_directory_path() / ("ulexite_trace_" + std::to_string(::getpid()));
  ::setenv("ULEXITE_TRACE", file.c_str(), 1);
  run([] { spawn({.name = "traced"}, [] {}).join(); });
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(count(text.str(), R"("name":"traced #\d+")"), 1U) << text.str();
  std::filesystem::remove(file);
}

TEST_F(TraceFile, ThatCannotBeWrittenIsTold) {
  ::setenv("ULEXITE_TRACE", "/nonexistent/trace", 1);
  testing::internal::CaptureStderr();
  int ran = 0;
  run([&] { ran = 1; });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("ULEXITE_TRACE: /nonexistent/trace cannot be written (No such file or directory)"),
            std::string::npos)
      << text;
  EXPECT_EQ(ran, 1);
}

TEST_F(TraceFile, ThatHasNoRoomIsTold) {
  ::setenv("ULEXITE_TRACE", "/dev/full", 1);
  testing::internal::CaptureStderr();
  run([] {});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("ULEXITE_TRACE: the trace is incomplete"), std::string::npos) << text;
}

TEST_F(TraceFile, ThatIsAFifoWithoutAReaderIsTold) {
  const auto file = std::filesystem::temp_directory_path() / ("ulexite_trace_" + std::to_string(::getpid()));
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  ::setenv("ULEXITE_TRACE", file.c_str(), 1);
  testing::internal::CaptureStderr();
  run([] {});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("cannot be written (No such device or address): no trace is recorded"), std::string::npos)
      << text;
  std::filesystem::remove(file);
}

}  // namespace
