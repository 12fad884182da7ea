// Dumps that a signal asks for, and the file that the environment names for them.

#include "support/runtime_fixture.hpp"

#include <ulexite/sync/event.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using namespace std::chrono_literals;

class SignalDump : public RuntimeTest {
 protected:
  // A shell gives its background programs an ignored SIGQUIT.
  SignalDump() {
    ::signal(SIGQUIT, SIG_DFL);
    ::setenv("ULEXITE_DUMP", file_.c_str(), 1);
  }
  ~SignalDump() override {
    ::unsetenv("ULEXITE_DUMP");
    std::filesystem::remove(file_);
  }

  [[nodiscard]] std::string written() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  // Rings until the file has the words; the watchdog bounds it.
  void ring_until(int signal, std::string_view words) const {
    while (written().find(words) == std::string::npos) {
      ::kill(::getpid(), signal);
      std::this_thread::sleep_for(5ms);
    }
  }
  static void (*handler_of(int signal))(int) {
    struct sigaction now{};
    ::sigaction(signal, nullptr, &now);
    return now.sa_handler;
  }

  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("ulexite_dump_" + std::to_string(::getpid()))).string();
};

TEST_F(SignalDump, TellsOfEveryRuntime) {
  event enough;
  {
    runtime first({.threads = 1, .dump_signal = SIGUSR2}), second({.threads = 2, .dump_signal = SIGUSR2});
    auto one = first.spawn({.name = "of the first"}, [&] { enough.wait(); });
    auto other = second.spawn({.name = "of the second"}, [&] { enough.wait(); });
    ring_until(SIGUSR2, "\"of the first\": waits");
    ring_until(SIGUSR2, "\"of the second\": waits");
    enough.set();
    one.join();
    other.join();
  }
  EXPECT_EQ(handler_of(SIGUSR2), SIG_DFL);
}

TEST_F(SignalDump, IsSigquitIfTheEnvironmentNamesAFile) {
  {
    const runtime only({.threads = 1});
    EXPECT_NE(handler_of(SIGQUIT), SIG_DFL);
    ring_until(SIGQUIT, "ulexite runtime: 0 fibers");
  }
  EXPECT_EQ(handler_of(SIGQUIT), SIG_DFL);
}

TEST_F(SignalDump, IsJsonIfTheNameOfTheFileSaysSo) {
  const std::string file = file_ + ".json";
  ::setenv("ULEXITE_DUMP", file.c_str(), 1);
  {
    const runtime only({.threads = 1});
    std::string text;
    while (!text.ends_with("}\n")) {
      ::kill(::getpid(), SIGQUIT);
      std::this_thread::sleep_for(5ms);
      std::ostringstream read;
      read << std::ifstream(file).rdbuf();
      text = read.str();
    }
    EXPECT_TRUE(text.starts_with("{\"program\":")) << text;
    EXPECT_NE(text.find(",\"fibers_live\":0,"), std::string::npos) << text;
  }
  std::filesystem::remove(file);
}

TEST_F(SignalDump, RefusesASignalThatCannotBeHandled) {
  try {
    const runtime none({.dump_signal = SIGKILL});
    FAIL() << "no error";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("dump_signal 9"), std::string::npos) << error.what();
  }
}

TEST_F(SignalDump, LeavesAHandlerThatTheProgramHasSetSince) {
  {
    const runtime only({.threads = 1});
    struct sigaction ours{};
    ::sigaction(SIGQUIT, nullptr, &ours);
    EXPECT_NE(ours.sa_flags & SA_ONSTACK, 0);
    ::signal(SIGQUIT, SIG_IGN);
  }
  EXPECT_EQ(handler_of(SIGQUIT), SIG_IGN);
}

TEST_F(SignalDump, GoesToStderrIfTheFileCannotBeWritten) {
  ::setenv("ULEXITE_DUMP", "/nonexistent/dump", 1);
  const int before = ::dup(STDERR_FILENO);
  const int file = ::open(file_.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  ::dup2(file, STDERR_FILENO);
  {
    const runtime only({.threads = 1});
    ring_until(SIGQUIT, "ulexite runtime: 0 fibers");
  }
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(file);
  EXPECT_NE(written().find("/nonexistent/dump cannot be written (error 2)"), std::string::npos) << written();
}

}  // namespace
