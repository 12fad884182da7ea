#pragma once

// Failures of the machine on request, for tests: while a fault_scope lives, the system call of a chosen number fails.
// Link ulexite::faults, which takes the place of those functions of libc in the whole program; so the calls of libevent and
// of the C++ library are met too.

#include <ulexite/base/standard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ulexite::testing {

// What may fail, and with which error.
enum class system_call : std::uint8_t {
  mmap,        // ENOMEM
  mprotect,    // ENOMEM
  madvise,     // ENOMEM
  thread,      // pthread_create: EAGAIN
  epoll_add,   // epoll_ctl that adds: ENOSPC
  descriptor,  // epoll_create1, eventfd, timerfd_create, socket, open, openat, pipe2: EMFILE
  accept,      // accept4: EMFILE
  connect,     // ENETUNREACH
  receive,     // recv, recvmsg: ECONNRESET
  send,        // send, sendmsg: ECONNRESET
  file_read,   // pread, preadv, preadv2: EIO
  file_write,  // pwrite, pwritev, pwritev2: ENOSPC
};
// How many kinds there are.
inline constexpr std::size_t system_calls = 12;

// Counts the calls of all threads, and lets some fail. One at a time.
class fault_scope {
 public:
  // The call of that number, from 1, fails, and the `repeats` - 1 after it. 0: none does, they are only counted.
  explicit fault_scope(std::size_t number, std::size_t repeats = 1) noexcept;
  fault_scope(const fault_scope&) = delete;
  fault_scope& operator=(const fault_scope&) = delete;
  ~fault_scope();

  // Calls until now.
  [[nodiscard]] std::size_t calls() const noexcept;
  // Those that failed on request, by kind.
  [[nodiscard]] std::array<std::size_t, system_calls> failed() const noexcept;
};

// "mmap" and so on.
const char* to_string(system_call which) noexcept;

}  // namespace ulexite::testing
