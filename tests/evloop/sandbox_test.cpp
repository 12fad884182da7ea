// Sandboxes that refuse timerfds and eventfds: libevent's timers and wakes take their place.

#include "probes.hpp"
#include "support/seccomp.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <chrono>
#include <initializer_list>
#include <thread>

namespace ulexite::test {
namespace {

constexpr int no_sandbox = 77;

void refuse(std::initializer_list<unsigned> system_calls) {
  for (const unsigned each : system_calls)
    if (!refuse_system_call(each, EPERM)) std::_Exit(no_sandbox);
}

// Runs `body` in a child process, which it ends.
template <class Body>
void expect_success(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    std::_Exit(2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == no_sandbox) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(status, 0);
}

TEST(SandboxedLoop, WakesAndFiresTimers) {
  expect_success([] {
    refuse({SYS_timerfd_create, SYS_eventfd2});
    ::execl("/proc/self/exe", "unit_evloop", "--gtest_filter=EventLoop.*", nullptr);
  });
}

TEST(SandboxedLoop, FiresTimersThoughTheSandboxBeginsLater) {
  expect_success([] {
    event_loop loop(1);
    refuse({SYS_timerfd_settime});
    timer_probe timer;
    timer.prepare();
    loop.arm(timer, now() + 20 * millisecond, 0);
    if (wait_for_events(loop) != std::vector<event*>{&timer} || now() < timer.deadline) std::_Exit(1);
    // The alarm does not ring again.
    const std::int64_t fired = now();
    std::jthread waker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(80));
      loop.wake();
    });
    event_list none;
    loop.wait(none);
    std::_Exit(now() - fired >= 80 * millisecond ? 0 : 1);
  });
}

}  // namespace
}  // namespace ulexite::test
