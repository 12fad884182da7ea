// A worker that does not switch is reported by itself. That the backtrace has the right frames is seen by tests/hangs.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/on_thread_stack.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <signal.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class StuckWorker : public RuntimeTest {
 protected:
  StuckWorker() { ::setenv("ULEXITE_DUMP", file_.c_str(), 1); }
  ~StuckWorker() override {
    ::unsetenv("ULEXITE_DUMP");
    std::filesystem::remove(file_);
  }

  // About the main fiber. On a busy machine the worker's own beginning may be reported too.
  [[nodiscard]] std::size_t reports() const {
    const std::string text = written();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("\"main\", spawned at ", at)) != std::string::npos; ++at) ++count;
    return count;
  }
  [[nodiscard]] std::string written() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  // Does not switch until so many reports were written; the watchdog bounds it.
  void compute_until(std::size_t wanted) const {
    while (reports() < wanted) {
    }
  }

  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("ulexite_stuck_" + std::to_string(::getpid()))).string();
};

TEST_F(StuckWorker, IsReportedOnceEachTime) {
  runtime& rt = make({.threads = 1, .stuck_after = 30ms});
  rt.run([&] {
    compute_until(1);
    for (const auto until = std::chrono::steady_clock::now() + 100ms; std::chrono::steady_clock::now() < until;) {
    }
    EXPECT_EQ(reports(), 1U) << written();
    this_fiber::sleep_for(1ms);
    compute_until(2);
  });
  EXPECT_NE(written().find("\"main\", spawned at "), std::string::npos) << written();
}

TEST_F(StuckWorker, HasNoBacktraceIfTheProgramHandlesTheSignal) {
  ::signal(SIGURG, [](int) {});
  runtime& rt = make({.threads = 1, .stuck_after = 30ms});
  rt.run([&] { compute_until(1); });
  EXPECT_NE(written().find("no backtrace: "), std::string::npos) << written();
  ::signal(SIGURG, SIG_DFL);
}

TEST_F(StuckWorker, IsNamedInACallOnTheThreadsOwnStack) {
  runtime& rt = make({.threads = 1, .stuck_after = 30ms});
  rt.run([&] { on_thread_stack([&] { compute_until(1); }); });
}

TEST_F(StuckWorker, HasATimeThatIsNotNegative) {
  EXPECT_THROW(make({.threads = 1, .stuck_after = -1ms}), std::invalid_argument);
}

TEST_F(StuckWorker, IsNeverReportedBeforeATimeBeyondTheClock) {
  runtime& rt = make({.threads = 1, .stuck_after = std::chrono::milliseconds::max()});
  rt.run([] { hog_until([] { return false; }, 50ms); });
  EXPECT_EQ(reports(), 0U) << written();
}

TEST_F(StuckWorker, LeavesTheSignalAsItWas) {
  runtime& rt = make({.threads = 1, .stuck_after = 30ms});
  rt.run([&] { compute_until(1); });
  end(rt, shutdown_mode::drain);  // so that the report is over
  struct sigaction now{};
  ::sigaction(SIGURG, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST_F(StuckWorker, IsALineOfJsonInAFileOfJson) {
  const std::string file = file_ + ".json";
  ::setenv("ULEXITE_DUMP", file.c_str(), 1);
  const auto reread = [&] {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  };
  runtime& rt = make({.threads = 1, .stuck_after = 30ms});
  rt.run([&] {
    while (reread().find("\"main\\\", spawned at ") == std::string::npos) {
    }
  });
  end(rt, shutdown_mode::drain);  // so that the report is over
  std::istringstream lines(reread());
  std::filesystem::remove(file);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.starts_with("{\"report\":\"ulexite: worker 0 has not switched for ")) << line;
    EXPECT_TRUE(line.ends_with("\"}")) << line;
  }
}

}  // namespace
