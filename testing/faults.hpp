#pragma once

// Failures of system calls on request, for tests. While a fault_scope exists, the system call with a chosen number
// fails. Link ulexite::faults, which replaces functions of libc in the whole program. So calls of libevent and of the
// C++ library count too. Of functions for files, glibc's second names count too, such as open64 and preadv64v2.

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace ulexite::testing {

// The calls that may fail, and their errors.
enum class system_call : std::uint8_t {
  mmap,        // mmap: ENOMEM
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

// Counts the calls of all threads, and lets some fail. One at a time.
class fault_scope {
 public:
  // Makes call number `number`, from 1, fail, and the next `repeats` - 1. 0: no call fails, calls are only counted.
  explicit fault_scope(std::size_t number, std::size_t repeats = 1) noexcept;
  fault_scope(const fault_scope&) = delete;
  fault_scope& operator=(const fault_scope&) = delete;
  ~fault_scope();

  // The number of calls so far.
  [[nodiscard]] std::size_t calls() const noexcept;
  // The number of calls of this kind that failed on request.
  [[nodiscard]] std::size_t failed(system_call which) const noexcept;
};

// The name of a kind, such as "mmap".
[[nodiscard]] std::string to_string(system_call which);

}  // namespace ulexite::testing
