#pragma once

// Waiting for descriptors that somebody else owns: a pipe, an eventfd, the sockets of a client library. These are what
// such libraries need of a runtime: libpq, libcurl's multi interface, c-ares and hiredis work over them as they are.
//
// A descriptor is watched for the duration of the call only, so it may be closed afterwards, and its number used again,
// without telling anybody; not during the call. A fiber is suspended, a plain thread blocks in poll(2). Several may
// wait for one descriptor; all are woken. A hang-up or an error of the descriptor counts as ready, so that the read or
// write that follows tells of it. What cannot be watched, as a regular file, is always ready.
//
// It must be non-blocking, or at least ready descriptors must not block the worker in the call that follows: another
// process may read first.
//
// All of these are cancellation points: they throw operation_cancelled. They throw std::system_error naming the
// descriptors when one is not open, or the machine refuses to watch it. Points in time may be of any clock.

#include <ulexite/runtime/wait/suspend.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ulexite::net {

// A set of directions: those to wait for, or those that are ready.
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
  interest ready = interest::none;   // set by wait_any: what of it is ready
};

}  // namespace ulexite::net

namespace ulexite::detail {

// False: the deadline was over first.
bool wait_for_fds(std::span<net::fd_interest> fds, std::int64_t deadline);

inline net::interest wait_for_fd(int fd, net::interest wanted, std::int64_t deadline) {
  net::fd_interest only{fd, wanted};
  wait_for_fds({&only, 1}, deadline);
  return only.ready;
}

}  // namespace ulexite::detail

namespace ulexite::net {

// Waits until one of the descriptors is ready, and marks all that are. Returns how many that is; 0 when `deadline` was
// over first. A deadline that is over already asks once. A descriptor may occur several times. Without descriptors it
// waits for the deadline. Wanting nothing of a descriptor leaves it out.
template <class Clock, class Duration>
std::size_t wait_any(std::span<fd_interest> fds, std::chrono::time_point<Clock, Duration> deadline) {
  detail::wait_for_fds(fds, detail::deadline_at(deadline));
  std::size_t count = 0;
  for (const fd_interest& each : fds) count += each.ready != interest::none;
  return count;
}
inline std::size_t wait_any(std::span<fd_interest> fds) { return wait_any(fds, steady_clock::time_point::max()); }

// The same for one descriptor. Returns what it is ready for; interest::none when `deadline` was over first.
template <class Clock, class Duration>
interest wait_fd(int fd, interest wanted, std::chrono::time_point<Clock, Duration> deadline) {
  return detail::wait_for_fd(fd, wanted, detail::deadline_at(deadline));
}
inline interest wait_fd(int fd, interest wanted) { return wait_fd(fd, wanted, steady_clock::time_point::max()); }

// Waits until `fd` can be read from, or written to, without blocking.
inline void wait_readable(int fd) { wait_fd(fd, interest::read); }
inline void wait_writable(int fd) { wait_fd(fd, interest::write); }

// The same, but no longer than `time`, or until `time`. False when that was over first.
template <class Rep, class Period>
[[nodiscard]] bool wait_readable_for(int fd, std::chrono::duration<Rep, Period> time) {
  return detail::wait_for_fd(fd, interest::read, detail::deadline_after(time)) != interest::none;
}
template <class Rep, class Period>
[[nodiscard]] bool wait_writable_for(int fd, std::chrono::duration<Rep, Period> time) {
  return detail::wait_for_fd(fd, interest::write, detail::deadline_after(time)) != interest::none;
}
template <class Clock, class Duration>
[[nodiscard]] bool wait_readable_until(int fd, std::chrono::time_point<Clock, Duration> time) {
  return wait_fd(fd, interest::read, time) != interest::none;
}
template <class Clock, class Duration>
[[nodiscard]] bool wait_writable_until(int fd, std::chrono::time_point<Clock, Duration> time) {
  return wait_fd(fd, interest::write, time) != interest::none;
}

}  // namespace ulexite::net
