#pragma once

#include <ulexite/evloop/event.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace ulexite::detail {

class fd_source;

// Readiness of file descriptors and deadlines, for opaque events. One loop serves a whole runtime: any thread arms and
// disarms events; one thread at a time turns the loop, and gets the events that fired as a list.
class event_loop {
 public:
  // `shards`: number of timer heaps, each with a lock of its own; one per worker keeps them apart.
  // Throws std::system_error when the kernel refuses the descriptors it needs.
  explicit event_loop(std::size_t shards);
  ~event_loop();
  event_loop(const event_loop&) = delete;
  event_loop& operator=(const event_loop&) = delete;

  // Turning the loop: one thread at a time, the caller sees to that.

  // Appends to `ready` what has fired, and never blocks.
  void poll(event_list& ready) noexcept;
  // The same, but blocks until something has fired or wake was called since the last return of wait.
  void wait(event_list& ready) noexcept;
  // Fires only the timers that are due: no system call.
  void fire_timers(event_list& ready) noexcept;

  // Makes the present or else the next wait return. Sticky: a wake before the wait is not lost. Any thread.
  void wake() noexcept;

  // Makes room for `count` armed timers in all, in each heap: arming them takes no memory, and so cannot fail. Throws
  // std::bad_alloc. Any thread.
  void provide_timers(std::size_t count);
  // Arms `timer` at `deadline` (steady clock, nanoseconds) in heap `shard`. It must be idle, and there must be room or
  // memory for it. Any thread.
  void arm(timer_event& timer, std::int64_t deadline, std::size_t shard) noexcept;
  // Takes `timer` back; true if it had not fired. After the return the loop does not touch it. Any thread.
  bool cancel(timer_event& timer) noexcept;
  // The earliest deadline armed, or INT64_MAX. A hint. Any thread.
  std::int64_t next_deadline() const noexcept;

  // Registers `fd`, non-blocking, once for its life. Throws std::system_error (EPERM: a file, always ready). Any
  // thread.
  fd_source& open(int fd);
  // Ends the registration: both waiting events that can be claimed are appended to `woken`, later arms return false,
  // and the source may be used again for another fd. Call before the fd is closed. Any thread.
  void close(fd_source& source, event_list& woken) noexcept;
  // Waits for `event` to become ready in `direction`. False: it is ready already (or the source is closed), and the
  // event was not taken. An earlier readiness that nobody consumed counts, so a false may be stale, and so may an event
  // that fires (just after open, for the former use of the descriptor's number): try the system call, and on EAGAIN arm
  // again. At most one event per direction; throws nothing; a second one is a panic. Any thread.
  static bool arm(fd_source& source, direction direction, event& event) noexcept;
  // Takes `event` back, whether or not it fired. After the return the loop does not touch it. Any thread.
  static void disarm(fd_source& source, direction direction, event& event) noexcept;

  // An edge of a descriptor of a simulated network, which the loop does not see: appends to `ready` the events that it
  // ends. On the thread of the run.
  static void fire(fd_source& source, bool readable, bool writable, bool hung_up, event_list& ready) noexcept;

  // Open descriptors plus armed timers: what may make the loop's wait return by itself. Any thread; a hint unless
  // quiet.
  std::size_t registrations() const noexcept;

 private:
  friend fd_source;
  struct state;
  fd_source& open_simulated(int fd);
  std::unique_ptr<state> state_;
};

}  // namespace ulexite::detail
