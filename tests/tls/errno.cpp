// errno belongs to the thread on which a fiber runs at that moment. std::stol and std::stod use it, and are inlined
// into a function that waits. errno_test.py builds this with the folder of our errno.h, where all is right, and without
// it, where compilers keep the address of the first errno.

#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/task_group.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace ux = ulexite;
using namespace std::chrono_literals;

namespace {

std::atomic<long> accepted, refused, other, reads;

[[gnu::noinline]] void sleep_until_on_another_thread() {
  const auto before = ::gettid();
  do ux::this_fiber::sleep_for(10us);
  while (::gettid() == before);
}

// A number that is too large is accepted, or 12345 is refused, if errno is that of another thread. Its loop becomes a
// part of the lambda that calls it, so that tls_check also reads code with such a name.
[[gnu::always_inline]] inline void numbers(const std::string& large, const std::string& small, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    try {
      static_cast<void>(std::stol(large));
      ++accepted;
    } catch (const std::out_of_range&) {
    }
    sleep_until_on_another_thread();
    try {
      if (std::stod(small) != 12345) ++refused;
    } catch (const std::out_of_range&) {
      ++refused;
    }
  }
}

// A system call and its errno, with no wait in between: right, unless another fiber writes the errno of this thread.
[[gnu::noinline]] void read_nothing() {
  const ssize_t got = ::read(-1, nullptr, 0);
  const int error = errno;
  ++reads;
  if (got != -1 || error != EBADF) ++other;
}

}  // namespace

int main() {
  ux::runtime runtime({.threads = 2});
  runtime.run([] {
    const std::string large = "99999999999999999999999", small = "12345";
    std::atomic<bool> end = false;
    ux::task_group readers, all;
    for (int i = 0; i < 4; ++i)
      readers.spawn([&] {
        while (!end) {
          for (int k = 0; k < 100; ++k) read_nothing();
          ux::this_fiber::sleep_for(5us);
        }
      });
    for (int i = 0; i < 8; ++i) all.spawn([&] { numbers(large, small, 200); });
    all.wait();
    end = true;
    readers.wait();
  });
  std::printf("accepted %ld refused %ld other %ld of %ld\n", accepted.load(), refused.load(), other.load(),
              reads.load());
  return accepted + refused + other == 0 ? 0 : 1;
}
