// Replacements of libc functions, which count their calls, and fail on request. libc's own calls do not use them.
//
// State
//   faults   the settings of the fault_scope, and counters. Nothing else depends on them.

#include <ulexite/testing/faults.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

namespace ulexite::testing {
namespace {

struct {
  std::atomic<bool> on{false};
  std::atomic<std::size_t> calls{0}, first{0}, last{0};
  std::array<std::atomic<std::size_t>, system_calls> failed{};
} faults;

// Whether this call must fail.
bool fails(system_call which) noexcept {
  if (!faults.on.load(std::memory_order_relaxed)) return false;                         // a setting
  const std::size_t number = faults.calls.fetch_add(1, std::memory_order_relaxed) + 1;  // counter
  if (number < faults.first.load(std::memory_order_relaxed) || number >= faults.last.load(std::memory_order_relaxed))
    return false;                                                                          // settings
  faults.failed[static_cast<std::size_t>(which)].fetch_add(1, std::memory_order_relaxed);  // counter
  return true;
}

// libc's own function of that name.
template <class Function>
Function* real(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

template <class Result>
Result failed_with(int error, Result result) noexcept {
  errno = error;
  return result;
}

}  // namespace

fault_scope::fault_scope(std::size_t number, std::size_t repeats) noexcept {
  for (auto& each : faults.failed) each.store(0, std::memory_order_relaxed);                // counter
  faults.calls.store(0, std::memory_order_relaxed);                                         // counter
  faults.first.store(number == 0 ? SIZE_MAX : number, std::memory_order_relaxed);           // a setting
  faults.last.store(number == 0 ? SIZE_MAX : number + repeats, std::memory_order_relaxed);  // a setting
  faults.on.store(true, std::memory_order_relaxed);                                         // a setting
}

fault_scope::~fault_scope() { faults.on.store(false, std::memory_order_relaxed); }  // a setting

std::size_t fault_scope::calls() const noexcept { return faults.calls.load(std::memory_order_relaxed); }  // counter

std::array<std::size_t, system_calls> fault_scope::failed() const noexcept {
  std::array<std::size_t, system_calls> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] = faults.failed[i].load(std::memory_order_relaxed);  // counter
  return counts;
}

const char* to_string(system_call which) noexcept {
  static constexpr const char* names[system_calls] = {"mmap",      "mprotect",   "madvise",   "thread",
                                                      "epoll_add", "descriptor", "accept",    "connect",
                                                      "receive",   "send",       "file_read", "file_write"};
  return names[static_cast<std::size_t>(which)];
}

}  // namespace ulexite::testing

// A macro defines each function by its own name, although libc declares it with other attributes.
#define ULEXITE_FAULT(result, name, parameters, arguments, kind, error, failure) \
  extern "C" __attribute__((visibility("default"))) result name parameters {     \
    static auto* const own = ulexite::testing::real<result parameters>(#name);   \
    if (ulexite::testing::fails(ulexite::testing::system_call::kind))            \
      return ulexite::testing::failed_with<result>(error, failure);              \
    return own arguments;                                                        \
  }

ULEXITE_FAULT(void*, mmap, (void* at, size_t size, int protection, int flags, int fd, off_t offset),
              (at, size, protection, flags, fd, offset), mmap, ENOMEM, MAP_FAILED)
ULEXITE_FAULT(int, mprotect, (void* at, size_t size, int protection) noexcept, (at, size, protection), mprotect, ENOMEM,
              -1)
ULEXITE_FAULT(int, madvise, (void* at, size_t size, int advice) noexcept, (at, size, advice), madvise, ENOMEM, -1)
ULEXITE_FAULT(int, epoll_create1, (int flags) noexcept, (flags), descriptor, EMFILE, -1)
ULEXITE_FAULT(int, eventfd, (unsigned value, int flags) noexcept, (value, flags), descriptor, EMFILE, -1)
ULEXITE_FAULT(int, timerfd_create, (clockid_t clock, int flags) noexcept, (clock, flags), descriptor, EMFILE, -1)
ULEXITE_FAULT(int, socket, (int family, int type, int protocol) noexcept, (family, type, protocol), descriptor, EMFILE,
              -1)
ULEXITE_FAULT(int, pipe2, (int* fds, int flags) noexcept, (fds, flags), descriptor, EMFILE, -1)
ULEXITE_FAULT(int, accept4, (int fd, sockaddr* peer, socklen_t* size, int flags), (fd, peer, size, flags), accept,
              EMFILE, -1)
ULEXITE_FAULT(int, connect, (int fd, const sockaddr* to, socklen_t size), (fd, to, size), connect, ENETUNREACH, -1)
ULEXITE_FAULT(ssize_t, recv, (int fd, void* data, size_t size, int flags), (fd, data, size, flags), receive, ECONNRESET,
              -1)
ULEXITE_FAULT(ssize_t, recvmsg, (int fd, msghdr* into, int flags), (fd, into, flags), receive, ECONNRESET, -1)
ULEXITE_FAULT(ssize_t, send, (int fd, const void* data, size_t size, int flags), (fd, data, size, flags), send,
              ECONNRESET, -1)
ULEXITE_FAULT(ssize_t, sendmsg, (int fd, const msghdr* from, int flags), (fd, from, flags), send, ECONNRESET, -1)
ULEXITE_FAULT(ssize_t, pread, (int fd, void* data, size_t size, off_t at), (fd, data, size, at), file_read, EIO, -1)
ULEXITE_FAULT(ssize_t, preadv2, (int fd, const iovec* into, int count, off_t at, int flags),
              (fd, into, count, at, flags), file_read, EIO, -1)
ULEXITE_FAULT(ssize_t, pwrite, (int fd, const void* data, size_t size, off_t at), (fd, data, size, at), file_write,
              ENOSPC, -1)
ULEXITE_FAULT(ssize_t, pwritev2, (int fd, const iovec* from, int count, off_t at, int flags),
              (fd, from, count, at, flags), file_write, ENOSPC, -1)

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) noexcept {
  static auto* const own =
      ulexite::testing::real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return ulexite::testing::fails(ulexite::testing::system_call::thread) ? EAGAIN
                                                                        : own(thread, attributes, function, argument);
}

extern "C" int epoll_ctl(int loop, int operation, int fd, epoll_event* event) noexcept {
  static auto* const own = ulexite::testing::real<int(int, int, int, epoll_event*)>("epoll_ctl");
  if (operation == EPOLL_CTL_ADD && ulexite::testing::fails(ulexite::testing::system_call::epoll_add))
    return ulexite::testing::failed_with(ENOSPC, -1);
  return own(loop, operation, fd, event);
}

extern "C" int open(const char* path, int flags, ...) {
  static auto* const own = ulexite::testing::real<int(const char*, int, ...)>("open");
  if (ulexite::testing::fails(ulexite::testing::system_call::descriptor))
    return ulexite::testing::failed_with(EMFILE, -1);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return own(path, flags, mode);
}

extern "C" int openat(int folder, const char* path, int flags, ...) {
  static auto* const own = ulexite::testing::real<int(int, const char*, int, ...)>("openat");
  if (ulexite::testing::fails(ulexite::testing::system_call::descriptor))
    return ulexite::testing::failed_with(EMFILE, -1);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return own(folder, path, flags, mode);
}
