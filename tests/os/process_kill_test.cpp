// A program that other code has reaped gets no signal, because another process may have its number.

#include "os/os_fixture.hpp"

#include <ulexite/os/process.hpp>

#include <signal.h>
#include <sys/syscall.h>

#include <atomic>

namespace {

std::atomic<pid_t> killed{0};

}  // namespace

extern "C" int kill(pid_t number, int signal) noexcept {
  killed = number;
  return static_cast<int>(::syscall(SYS_kill, number, signal));
}

namespace {

using namespace ulexite;
using namespace ulexite::os;
using os::process;
using namespace ulexite::test;

class ProcessKill : public OsTest {};
ULEXITE_TEST_WORKERS(ProcessKill);

TEST_P(ProcessKill, SparesTheNumberOfAProcessThatOtherCodeHasReaped) {
  in_runtime([] {
    process gone({.arguments = {"true"}});
    ASSERT_EQ(::waitpid(gone.id(), nullptr, 0), gone.id());
    try {
      gone.kill(SIGTERM);
      ADD_FAILURE();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::no_such_process);
    }
    EXPECT_NE(killed, gone.id());
  });
}

}  // namespace
