#include <ulexite/base/kernel.hpp>

#include <unistd.h>

#include <cerrno>

namespace ulexite::detail {

#if defined(__GNUC__) && !defined(__clang__)
[[gnu::noipa]]
#endif
[[gnu::noinline]] int
last_errno() noexcept {
  int* address = &errno;
  asm volatile("" : "+r"(address));
  return *address;
}

void kernel::close(int fd) noexcept {
  if (auto* const network = network_of(fd)) {
    network->close(fd);
  } else {
    ::close(fd);
  }
}

}  // namespace ulexite::detail
