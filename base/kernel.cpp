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

#if defined(__GNUC__) && !defined(__clang__)
[[gnu::noipa]]
#endif
[[gnu::noinline]] void
set_last_errno(int error) noexcept {
  int* address = &errno;
  asm volatile("" : "+r"(address));
  *address = error;
}

void kernel::close(int fd) noexcept {
  if (auto* const network = network_of(fd)) {
    network->close(fd);
  } else {
    ::close(fd);
  }
}

}  // namespace ulexite::detail
