// Dumps that a signal asks for, and the file that the environment names for them.

#include "support/runtime_fixture.hpp"

#include <ulexite/sync/event.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

TEST_F(SignalDump, RefusesASignalThatCannotBeHandledAndAFaultThatWouldComeAgain) {
  std::optional<runtime> other;
  for (const bool beside_another : {false, true}) {
    if (beside_another) other.emplace(runtime_options{.threads = 1, .dump_signal = SIGQUIT});
    for (const int signal : {SIGKILL, SIGSEGV, SIGBUS, SIGFPE, SIGILL, -1, 1000}) {
      try {
        const runtime none({.threads = 1, .dump_signal = signal});
        ADD_FAILURE() << "no error for " << signal;
      } catch (const std::invalid_argument& error) {
        EXPECT_EQ(std::string(error.what()).find("runtime_options::dump_signal is " + std::to_string(signal) + ": "), 0)
            << error.what();
      }
    }
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
  EXPECT_NE(written().find("/nonexistent/dump cannot be written (No such file or directory)"), std::string::npos)
      << written();
}

// A FIFO with the name of the file, and stderr in a file.
class DumpToFifo : public SignalDump {
 protected:
  DumpToFifo() {
    if (::mkfifo(file_.c_str(), 0600) != 0) throw std::runtime_error("no FIFO");
    ::dup2(errors_, STDERR_FILENO);
  }
  ~DumpToFifo() override { ::dup2(before_, STDERR_FILENO), ::close(before_), ::close(errors_); }

  [[nodiscard]] std::string errors() const {
    std::string text(static_cast<std::size_t>(::lseek(errors_, 0, SEEK_END)), ' ');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(::pread(errors_, text.data(), text.size(), 0), 0)));
    return text;
  }
  void ring_until_stderr_has(std::string_view words) const {
    for (; errors().find(words) == std::string::npos; std::this_thread::sleep_for(5ms)) ::kill(::getpid(), SIGQUIT);
  }

  const int before_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  const int errors_ = ::memfd_create("errors", MFD_CLOEXEC);
};

TEST_F(DumpToFifo, GoesToStderrIfNobodyReads) {
  const runtime only({.threads = 1});
  EXPECT_EQ(errors(), "");  // a reader may come later
  ring_until_stderr_has("ulexite runtime: 0 fibers");
  EXPECT_NE(errors().find("cannot be written (No such device or address): the report goes to stderr"),
            std::string::npos)
      << errors();
}

TEST_F(DumpToFifo, IsCutIfTheReaderDoesNotRead) {
  const int reader = ::open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(::fcntl(reader, F_SETPIPE_SZ, 4096), 0);
  {
    const runtime only({.threads = 1});
    ring_until_stderr_has("does not take all of a report: report cut");
  }
  ::close(reader);
}

TEST_F(SignalDump, OfAForkedChildIsItsOwn) {
  if (ULEXITE_TSAN) GTEST_SKIP() << "ThreadSanitizer starts no thread in a forked child";
  const std::string child_file = file_ + ".child";
  const runtime only({.threads = 1, .dump_signal = SIGUSR2});
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    if (handler_of(SIGUSR2) != SIG_DFL) ::_exit(1);
    ::setenv("ULEXITE_DUMP", child_file.c_str(), 1);
    {
      const runtime own({.threads = 1, .dump_signal = SIGUSR2});
      for (std::ostringstream text; text.str().find("ulexite runtime: 0 fibers") == std::string::npos;) {
        ::kill(::getpid(), SIGUSR2);
        std::this_thread::sleep_for(5ms);
        text << std::ifstream(child_file).rdbuf();
        text.clear();
      }
    }
    ::_exit(handler_of(SIGUSR2) == SIG_DFL ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(written(), "");
  ring_until(SIGUSR2, "ulexite runtime: 0 fibers");
  std::filesystem::remove(child_file);
}

}  // namespace
