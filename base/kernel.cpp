#include <ulexite/base/kernel.hpp>

#include <unistd.h>

#include <cerrno>

namespace ulexite::detail {
namespace {

#if defined(__GNUC__) && !defined(__clang__)
[[gnu::noipa]]
#endif
[[gnu::noinline]] int*
address_of_errno() noexcept {
  int* address = &errno;
  asm volatile("" : "+r"(address));
  return address;
}

}  // namespace

[[gnu::noinline]] int last_errno() noexcept { return *address_of_errno(); }

[[gnu::noinline]] void set_last_errno(int error) noexcept { *address_of_errno() = error; }

void kernel::close(int fd) noexcept {
  if (auto* const network = network_of(fd)) {
    network->close(fd);
  } else {
    ::close(fd);
  }
}

}  // namespace ulexite::detail
