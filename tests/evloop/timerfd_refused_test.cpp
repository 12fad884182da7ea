// A sandbox that refuses timerfd_settime.

#include "probes.hpp"
#include "support/seccomp.hpp"

#include <ulexite/evloop/timers.hpp>

#include <sys/syscall.h>

#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace ulexite::test {
namespace {

constexpr int no_sandbox = 77;

// For the calling process, from now on.
void refuse_to_set() {
  if (!refuse_system_call(SYS_timerfd_settime, EPERM)) std::_Exit(no_sandbox);
}

[[noreturn]] void make_timers() {
  refuse_to_set();
  try {
    const detail::timers none(1);
    std::_Exit(1);
  } catch (const std::system_error& error) {
    std::_Exit(error.code() == std::errc::operation_not_permitted &&
                       std::string_view(error.what()).find("setting a timerfd") != std::string_view::npos
                   ? 0
                   : 2);
  }
}

[[noreturn]] void wait_in_a_later_sandbox() {
  event_loop loop(1);
  refuse_to_set();
  timer_probe timer;
  timer.prepare();
  loop.arm(timer, now() + 20 * millisecond, 0);
  event_list ready;
  loop.wait(ready);
  std::_Exit(3);
}

TEST(TimerfdRefused, IsAnErrorOfTheTimers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(make_timers(), [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) % no_sandbox == 0; }, "");
}

TEST(TimerfdRefused, LaterEndsTheProcessWithWords) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::signal(SIGABRT, [](int) { std::_Exit(no_sandbox); });
        wait_in_a_later_sandbox();
      },
      testing::ExitedWithCode(no_sandbox), "^(ulexite: the system has begun to refuse timerfd_settime|$)");
}

}  // namespace
}  // namespace ulexite::test
