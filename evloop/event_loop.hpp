#pragma once

#include <ulexite/evloop/event.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace ulexite::detail {

class fd_source;

// Who registers a descriptor. A guest does not own it, so there may be another registration of it.
enum class registrant : bool { owner, guest };

// Reports ready file descriptors and passed deadlines to events. One loop serves a whole runtime. Any thread arms and
// disarms events. One thread at a time turns the loop, and gets the fired events as a list.
class event_loop {
 public:
  // `shards` is the number of timer heaps, each with its own lock; one per worker avoids contention. Throws
  // std::system_error if the kernel refuses a descriptor.
  explicit event_loop(std::size_t shards);
  ~event_loop();
  event_loop(const event_loop&) = delete;
  event_loop& operator=(const event_loop&) = delete;

  // Turning the loop: one thread at a time. The caller ensures this.

  // Appends the fired events to `ready`. Never blocks.
  void poll(event_list& ready) noexcept;
  // As poll, but blocks until an event has fired, or wake was called since the last return of wait.
  void wait(event_list& ready) noexcept;
  // Fires only the due timers. Makes no system call.
  void fire_timers(event_list& ready) noexcept;

  // Ends the present or the next wait: a wake before the wait is not lost. Any thread.
  void wake() noexcept;

  // Makes room for `count` armed timers in total, in each heap. Then arming them allocates nothing and cannot fail.
  // Throws std::bad_alloc. Any thread.
  void reserve_timers(std::size_t count);
  // Arms `timer` at `deadline` (steady clock, nanoseconds) in heap `shard`. It must be idle, and there must be room or
  // memory for it. Any thread.
  void arm(timer_event& timer, std::int64_t deadline, std::size_t shard) noexcept;
  // Takes `timer` back; true if it had not fired. After the return the loop does not touch it. Any thread.
  bool cancel(timer_event& timer) noexcept;
  // The earliest deadline armed, or INT64_MAX. A hint. Any thread.
  std::int64_t next_deadline() const noexcept;

  // Registers `fd`, non-blocking: by its owner once for its life, by guests for a while. The source may begin as ready
  // although `fd` is not: then the first arm of each direction returns false. Throws std::system_error (EPERM: a file,
  // always ready). Any thread.
  fd_source& open(int fd, registrant by = registrant::owner);
  // Ends the registration. Claims both waiting events and appends the claimed ones to `woken`; later arms return false.
  // The source may be used again for another fd. Call it before the fd is closed. Any thread.
  void close(fd_source& source, event_list& woken) noexcept;
  // Waits for `event` to become ready in `direction`. False: it is ready already (or the source is closed), and the
  // event was not taken. An earlier readiness that was not consumed counts, so false may be stale. A fired event may be
  // stale too (just after open, from an earlier use of the descriptor's number). So try the system call, and on EAGAIN
  // arm again. At most one event per direction; a second one is a panic. Any thread.
  static bool arm(fd_source& source, direction direction, event& event) noexcept;
  // Takes `event` back, whether or not it fired. After the return the loop does not touch it. Any thread.
  static void disarm(fd_source& source, direction direction, event& event) noexcept;

  // Delivers an edge of a simulated network's descriptor, which the loop does not see. Appends to `ready` the events
  // that it ends. On the thread of the run.
  static void fire(fd_source& source, bool readable, bool writable, bool hung_up, event_list& ready) noexcept;

  // The number of open descriptors and armed timers, which may end the loop's wait by themselves. Any thread; a hint
  // unless quiet.
  std::size_t registrations() const noexcept;

 private:
  friend fd_source;
  struct state;
  fd_source& open_simulated(int fd);
  std::unique_ptr<state> state_;
};

}  // namespace ulexite::detail
