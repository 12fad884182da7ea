// sandbox [WORD]: a first program as an online compiler runs it, in a sandbox that refuses system calls from the start
// of the process on.
#include "../support/seccomp.hpp"

#include <ulexite.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {

using namespace std::chrono_literals;

int hello() {
  ulexite::channel<int> numbers(4);
  ulexite::task_group senders;
  for (int i = 1; i <= 100; ++i)
    senders.spawn([&, i] {
      ulexite::this_fiber::sleep_for(1ms);
      numbers.send(i);
    });
  auto closer = ulexite::spawn([&] {
    senders.wait();
    numbers.close();
  });
  int sum = 0;
  for (const int number : numbers) sum += number;
  closer.join();
  const bool late = !ulexite::try_for(5ms, [] { ulexite::this_fiber::sleep_for(1h); });
  return late ? sum : -1;
}

bool refuse(std::string_view what) {
  using ulexite::test::refuse_advice, ulexite::test::refuse_system_call;
  if (what == "new_calls")  // membarrier, guards by MADV_GUARD_INSTALL, and advice for many ranges at once
    return refuse_system_call(SYS_membarrier, ENOSYS) && refuse_advice(SYS_madvise, 102, EINVAL) &&
           refuse_system_call(SYS_process_madvise, ENOSYS);
  if (what == "timerfd") return refuse_system_call(SYS_timerfd_create, EPERM);
  if (what == "eventfd") return refuse_system_call(SYS_eventfd2, EPERM);
  return what == "threads" && refuse_system_call(SYS_clone, EAGAIN) && refuse_system_call(SYS_clone3, EAGAIN);
}

}  // namespace

// The library asks the kernel before main what it can do, so the program starts again in the sandbox.
int main(int count, char** arguments) {
  if (count > 1) {
    if (!refuse(arguments[1])) {
      std::puts("no sandbox");
      return 77;
    }
    arguments[1] = nullptr;
    ::execv("/proc/self/exe", arguments);
    return 2;
  }
  try {
    std::printf("the sum is %d\n", ulexite::run(hello));
  } catch (const std::exception& refused) {
    std::printf("refused: %s\n", refused.what());
    return 1;
  }
}
