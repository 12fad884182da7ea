#pragma once

// Waits for descriptors of other owners: a pipe, an eventfd, the sockets of a client library. A client library needs
// nothing more from a runtime: libpq, libcurl's multi interface, c-ares and hiredis work with these functions
// unchanged.
//
// A call watches a descriptor only while it runs. So the descriptor may be closed after the call, and its number used
// again, without notice. It must not be closed during the call: then a socket that gets its number may never be woken.
// A fiber is suspended, a plain thread blocks in poll(2). Several waiters may wait for one descriptor; all are woken.
// A hang-up or an error of the descriptor counts as ready, so the read or write that follows reports it. A descriptor
// that cannot be watched, such as a regular file, is always ready.
//
// Make the descriptor non-blocking. Otherwise the call that follows may block the worker, because another process may
// read first.
//
// All functions here are cancellation points: they throw operation_cancelled. They throw std::system_error that names
// the descriptors if one is not open, or if the system refuses to watch it. A limit is a duration, or a point in time
// of any clock.

#include <ulexite/runtime/wait/suspend.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ulexite::net {

// A set of directions: to wait for, or that are ready.
enum class interest : std::uint8_t { none = 0, read = 1, write = 2, read_write = 3 };

// Both sets together.
constexpr interest operator|(interest a, interest b) noexcept {
  return static_cast<interest>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
// The directions that are in both sets.
constexpr interest operator&(interest a, interest b) noexcept {
  return static_cast<interest>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}

// A descriptor for wait_any, with the directions to wait for.
struct fd_interest {
  int fd = -1;                       // the descriptor
  interest wanted = interest::read;  // what to wait for
  interest ready = interest::none;   // set by wait_any: the directions that are ready
};

}  // namespace ulexite::net

namespace ulexite::detail {

// Returns the number of ready ones; 0 if the deadline passed first.
std::size_t wait_for_fds(std::span<net::fd_interest> fds, std::int64_t deadline);

inline net::interest wait_for_fd(int fd, net::interest wanted, std::int64_t deadline) {
  net::fd_interest only{fd, wanted};
  wait_for_fds({&only, 1}, deadline);
  return only.ready;
}

}  // namespace ulexite::detail

namespace ulexite::net {

// Waits until one of the descriptors is ready, and marks all ready ones. Returns their number; 0 if the limit passed
// first. If it has passed already, it checks once. A descriptor may occur several times. Without descriptors it waits
// for the limit. It skips a descriptor with interest::none.
inline std::size_t wait_any(std::span<fd_interest> fds, absolute_timeout limit = {}) {
  return detail::wait_for_fds(fds, limit.deadline());
}
template <std::convertible_to<relative_timeout> Time>
std::size_t wait_any(std::span<fd_interest> fds, Time limit) {
  return detail::wait_for_fds(fds, relative_timeout(limit).deadline());
}

// Waits until one descriptor is ready. Returns its ready directions; interest::none if the limit passed first.
inline interest wait_fd(int fd, interest wanted, absolute_timeout limit = {}) {
  return detail::wait_for_fd(fd, wanted, limit.deadline());
}
template <std::convertible_to<relative_timeout> Time>
interest wait_fd(int fd, interest wanted, Time limit) {
  return detail::wait_for_fd(fd, wanted, relative_timeout(limit).deadline());
}

// Former forms of wait_fd, which 0.2 will not have.
[[deprecated("use wait_fd(fd, interest::read)")]] inline void wait_readable(int fd) { wait_fd(fd, interest::read); }
[[deprecated("use wait_fd(fd, interest::write)")]] inline void wait_writable(int fd) { wait_fd(fd, interest::write); }
[[nodiscard, deprecated("use wait_fd(fd, interest::read, time)")]] inline bool wait_readable_for(
    int fd, relative_timeout time) {
  return wait_fd(fd, interest::read, time) != interest::none;
}
[[nodiscard, deprecated("use wait_fd(fd, interest::write, time)")]] inline bool wait_writable_for(
    int fd, relative_timeout time) {
  return wait_fd(fd, interest::write, time) != interest::none;
}
[[nodiscard, deprecated("use wait_fd(fd, interest::read, time)")]] inline bool wait_readable_until(
    int fd, absolute_timeout time) {
  return wait_fd(fd, interest::read, time) != interest::none;
}
[[nodiscard, deprecated("use wait_fd(fd, interest::write, time)")]] inline bool wait_writable_until(
    int fd, absolute_timeout time) {
  return wait_fd(fd, interest::write, time) != interest::none;
}

}  // namespace ulexite::net
