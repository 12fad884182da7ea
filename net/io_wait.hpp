#pragma once

// Waiting for a descriptor that somebody else owns: a pipe, a socket of a client library, an eventfd, a signalfd.
//
// The descriptor is watched for the duration of the call only, so it may be closed afterwards, and its number used
// again, without telling anybody; not during the call. A fiber is suspended, a plain thread blocks in poll(2). Several
// may wait for one descriptor; all are woken. A hang-up or an error of the descriptor counts as ready, so that the read
// or write that follows tells of it. What cannot be watched, as a regular file, is always ready.
//
// It must be non-blocking, or at least ready descriptors must not block the worker in the call that follows: another
// process may read first.
//
// All of these are cancellation points: they throw operation_cancelled. They throw std::system_error naming the
// descriptor when it is not open, or the machine refuses to watch it.

#include <ulexite/runtime/suspend.hpp>

#include <chrono>
#include <cstdint>

namespace ulexite::detail {

// False: the deadline was over first.
bool wait_for_fd(int fd, bool writable, std::int64_t deadline);

}  // namespace ulexite::detail

namespace ulexite::net {

// Waits until `fd` can be read from, or written to, without blocking.
inline void wait_readable(int fd) { detail::wait_for_fd(fd, false, detail::no_deadline); }
inline void wait_writable(int fd) { detail::wait_for_fd(fd, true, detail::no_deadline); }

// The same, but no longer than `time`, or until `time`. False when that was over first. A time that is over already
// asks once.
template <class Rep, class Period>
[[nodiscard]] bool wait_readable_for(int fd, std::chrono::duration<Rep, Period> time) {
  return detail::wait_for_fd(fd, false, detail::deadline_after(time));
}
template <class Rep, class Period>
[[nodiscard]] bool wait_writable_for(int fd, std::chrono::duration<Rep, Period> time) {
  return detail::wait_for_fd(fd, true, detail::deadline_after(time));
}
template <class Clock, class Duration>
[[nodiscard]] bool wait_readable_until(int fd, std::chrono::time_point<Clock, Duration> time) {
  return detail::wait_for_fd(fd, false, detail::deadline_at(time));
}
template <class Clock, class Duration>
[[nodiscard]] bool wait_writable_until(int fd, std::chrono::time_point<Clock, Duration> time) {
  return detail::wait_for_fd(fd, true, detail::deadline_at(time));
}

}  // namespace ulexite::net
