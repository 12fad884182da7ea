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

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>

namespace ulexite::testing {
namespace {

constexpr std::size_t system_calls = static_cast<std::size_t>(system_call::file_write) + 1;

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
  const bool for_ever = number == 0 || repeats > SIZE_MAX - number;
  for (auto& each : faults.failed) each.store(0, std::memory_order_relaxed);             // counter
  faults.calls.store(0, std::memory_order_relaxed);                                      // counter
  faults.first.store(number == 0 ? SIZE_MAX : number, std::memory_order_relaxed);        // a setting
  faults.last.store(for_ever ? SIZE_MAX : number + repeats, std::memory_order_relaxed);  // a setting
  faults.on.store(true, std::memory_order_relaxed);                                      // a setting
}

fault_scope::~fault_scope() { faults.on.store(false, std::memory_order_relaxed); }  // a setting

std::size_t fault_scope::calls() const noexcept { return faults.calls.load(std::memory_order_relaxed); }  // counter

std::size_t fault_scope::failed(system_call which) const noexcept {
  return faults.failed[static_cast<std::size_t>(which)].load(std::memory_order_relaxed);  // counter
}

std::string to_string(system_call which) {
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

// Positioned reads and writes of files, under one name each.
#define ULEXITE_FILE_FAULTS(read, readv, readv2, write, writev, writev2, place)                                       \
  ULEXITE_FAULT(ssize_t, read, (int fd, void* data, size_t size, place at), (fd, data, size, at), file_read, EIO, -1) \
  ULEXITE_FAULT(ssize_t, readv, (int fd, const iovec* into, int count, place at), (fd, into, count, at), file_read,   \
                EIO, -1)                                                                                              \
  ULEXITE_FAULT(ssize_t, readv2, (int fd, const iovec* into, int count, place at, int flags),                         \
                (fd, into, count, at, flags), file_read, EIO, -1)                                                     \
  ULEXITE_FAULT(ssize_t, write, (int fd, const void* data, size_t size, place at), (fd, data, size, at), file_write,  \
                ENOSPC, -1)                                                                                           \
  ULEXITE_FAULT(ssize_t, writev, (int fd, const iovec* from, int count, place at), (fd, from, count, at), file_write, \
                ENOSPC, -1)                                                                                           \
  ULEXITE_FAULT(ssize_t, writev2, (int fd, const iovec* from, int count, place at, int flags),                        \
                (fd, from, count, at, flags), file_write, ENOSPC, -1)

ULEXITE_FILE_FAULTS(pread, preadv, preadv2, pwrite, pwritev, pwritev2, off_t)

// The functions that open a file. The mode is the last argument, and only calls that may create a file have it.
#define ULEXITE_OPEN_FAULT(name, parameters, arguments, last, ...)            \
  extern "C" __attribute__((visibility("default"))) int name parameters {     \
    static auto* const own = ulexite::testing::real<int(__VA_ARGS__)>(#name); \
    if (ulexite::testing::fails(ulexite::testing::system_call::descriptor))   \
      return ulexite::testing::failed_with(EMFILE, -1);                       \
    va_list rest;                                                             \
    va_start(rest, last);                                                     \
    const mode_t mode = may_create(flags) ? va_arg(rest, mode_t) : 0;         \
    va_end(rest);                                                             \
    return own arguments;                                                     \
  }

namespace {
bool may_create(int flags) noexcept { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }
}  // namespace

ULEXITE_OPEN_FAULT(open, (const char* path, int flags, ...), (path, flags, mode), flags, const char*, int, ...)
ULEXITE_OPEN_FAULT(openat, (int folder, const char* path, int flags, ...), (folder, path, flags, mode), flags, int,
                   const char*, int, ...)

// glibc's second names. They matter for large files on 32-bit systems, but programs use them everywhere.
#ifdef __GLIBC__
ULEXITE_FAULT(void*, mmap64, (void* at, size_t size, int protection, int flags, int fd, off64_t offset),
              (at, size, protection, flags, fd, offset), mmap, ENOMEM, MAP_FAILED)
ULEXITE_FILE_FAULTS(pread64, preadv64, preadv64v2, pwrite64, pwritev64, pwritev64v2, off64_t)
ULEXITE_OPEN_FAULT(open64, (const char* path, int flags, ...), (path, flags, mode), flags, const char*, int, ...)
ULEXITE_OPEN_FAULT(openat64, (int folder, const char* path, int flags, ...), (folder, path, flags, mode), flags, int,
                   const char*, int, ...)
#endif

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
