// A sandbox that refuses timerfd_settime.

#include "probes.hpp"

#include <ulexite/evloop/timers.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <system_error>

namespace ulexite::test {
namespace {

constexpr int no_sandbox = 77;

// For the calling process, from now on.
void refuse_to_set() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timerfd_settime, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    std::_Exit(no_sandbox);
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
