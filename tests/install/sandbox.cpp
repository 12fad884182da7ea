// sandbox [WORD...] [one_thread]: a program as an online compiler runs it, in a sandbox that refuses system calls from
// the start of the process on, and threads from the start of the first worker on.
#include "../support/seccomp.hpp"

#include <ulexite.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {

using namespace std::chrono_literals;

// What a server sends back to a client before their time is over.
std::string echoed(std::string_view text) {
  ulexite::net::tcp_listener listener(ulexite::net::endpoint::ip("127.0.0.1", 0));
  auto server = ulexite::spawn([&] {
    auto peer = listener.accept();
    char data[100];
    while (const std::size_t got = peer.read_some(data, sizeof data)) peer.write(data, got);
  });
  std::string answer(text.size(), ' ');
  {
    auto client = ulexite::net::tcp_stream::connect(listener.local_endpoint(), {.timeout = 10s});
    client.expires_after(10s);
    client.write(text);
    answer.resize(client.read(answer.data(), answer.size()));
  }
  server.join();
  return answer;
}

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
  return late && echoed("hello") == "hello" ? sum : -1;
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
  int next = 1;
  for (; next < count && arguments[next] != std::string_view("one_thread"); ++next)
    if (!refuse(arguments[next])) {
      std::puts("no sandbox");
      return 77;
    }
  if (next > 1) {
    char* const again[] = {arguments[0], arguments[next], nullptr};
    ::execv("/proc/self/exe", again);
    return 2;
  }
  try {
    std::printf("the sum is %d\n", ulexite::run([&] { return count == 1 || refuse("threads") ? hello() : -2; }));
  } catch (const std::exception& refused) {
    std::printf("refused: %s\n", refused.what());
    return 1;
  }
}
