#pragma once

// A socket and who uses it: what streams, listeners and datagram sockets stand on. The library's own: nothing for
// users.
//
// One reader and one writer may use it at a time, and anybody may close it meanwhile. Invariants, under the lock:
//   closed_           implies  source_ is null: nobody waits for an edge, and nobody will
//   a user is inside  implies  fd_ is open and its number is this socket's
//   (one that was abandoned there is no user any more)
//   orphaned_         implies  closed_: the last user to leave deletes the object
//
// The source is registered for life when a fiber first has to wait; it belongs to that fiber's runtime. Plain threads,
// and fibers of other runtimes, wait without it (the `guests`): a close wakes them by shutting the connection down.
//
// State
//   expiry_   a setting; nothing else depends on it.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/fd_wait.hpp>
#include <ulexite/net/receive_state.hpp>
#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace ulexite::detail {

class event_loop;
class fd_source;

class socket {
 public:
  // Takes over `fd`, non-blocking. `plain_tcp`: with TCP_INQ on.
  socket(int fd, bool plain_tcp) noexcept : plain_tcp_(plain_tcp), fd_(fd) {}
  socket(const socket&) = delete;
  socket& operator=(const socket&) = delete;

  // Ends the connection for whoever uses it. True the first time. With `at_once` the system ends it now, and not when
  // the last user has left: what a connection has not sent yet may be lost. Any thread.
  bool close(bool at_once = false) noexcept;
  // Makes the system call `call(fd)`, one that never waits, beside whatever is under way, and keeps the descriptor open
  // meanwhile. Returns what the call does: a number or -errno; -EBADF once closed. Any thread.
  template <class Call>
  int at_once(Call&& call) noexcept {
    const std::lock_guard lock(lock_);
    return closed_ ? -EBADF : call(fd_);
  }
  // Who is at the other end, as far as it was told: what errors name, when the system has forgotten it. Any thread.
  void set_peer(const net::endpoint& peer) noexcept;
  [[nodiscard]] net::endpoint peer() const noexcept;
  // From now on a close removes the path that it is bound to.
  void owns_path() noexcept { owns_path_ = true; }
  // Ends the owner's use: closes it, and deletes it as soon as nobody is inside.
  void abandon() noexcept;
  // Gives the descriptor away, and leaves the socket closed. Throws usage_error while somebody is inside.
  int release();
  // Closes as close does, and returns a duplicate of the descriptor. What is open stays as it is, for other processes
  // too, and the path stays. -1 if it is closed already. Throws usage_error while a plain thread, or a fiber of another
  // runtime, waits here, because only a shutdown could wake that; std::system_error if there is no descriptor.
  int close_and_keep();

  [[nodiscard]] int fd() const noexcept;
  [[nodiscard]] bool is_plain_tcp() const noexcept { return plain_tcp_; }
  [[nodiscard]] bool is_open() const noexcept { return fd() >= 0; }

  // Nanoseconds of the steady clock, for the operations of that direction that begin later.
  void expires_at(direction towards, std::int64_t deadline) noexcept {
    expiry_[static_cast<unsigned>(towards)].store(deadline, std::memory_order_relaxed);  // a setting
  }
  [[nodiscard]] std::int64_t expiry(direction towards) const noexcept {
    return expiry_[static_cast<unsigned>(towards)].load(std::memory_order_relaxed);  // a setting
  }

  // Makes the system call `call(fd)`, which returns what it did or -errno, and waits as often as it would block. A
  // cancellation point. Errors: those of the call; bad_file_descriptor once closed; timed_out after the deadline;
  // errc::cancelled. Throws usage_error if another operation in this direction is under way.
  template <class Call>
  std::size_t perform(direction towards, std::int64_t deadline, std::error_code& error, Call&& call) {
    const std::size_t done = perform_inside(towards, deadline, error, call);
    if (!error) spend_budget();
    return done;
  }

  // The same up to the expiry, for a `call` that reads, and tells whether nothing was left: call(fd, drained); or one
  // that sends.
  template <class Call>
  std::size_t receive(std::error_code& error, Call&& call) {
    bool may_be_in_vain = true;
    return perform(read_side, expiry(read_side), error, [&](int fd) -> ssize_t {
      if (std::exchange(may_be_in_vain, false) && nothing_to_read()) return would_block;
      bool nothing_left = false;
      const ssize_t got = call(fd, nothing_left);
      if (got == 0 && !is_open()) return would_block;  // an end that close made
      if (got >= 0) received_.note_read(nothing_left);
      return got;
    });
  }
  template <class Call>
  std::size_t send(std::error_code& error, Call&& call) {
    return perform(write_side, expiry(write_side), error, [&](int fd) -> ssize_t {
      const std::uint32_t before = received_.before_send();
      const ssize_t sent = call(fd);
      if (sent > 0) received_.note_send(before);
      return sent;
    });
  }

  static const direction read_side, write_side;

 private:
  // Somebody's being inside.
  class user {
   public:
    user(socket& used, direction towards, std::error_code& error)
        : socket_(used), towards_(towards), inside_(used.enter(towards, error)) {}
    ~user() {
      if (inside_) socket_.leave(towards_);
    }
    user(const user&) = delete;
    user& operator=(const user&) = delete;

   private:
    socket& socket_;
    const direction towards_;
    const bool inside_;
  };
  struct side;
  static const ssize_t would_block;

  ~socket() = default;

  template <class Call>
  std::size_t perform_inside(direction towards, std::int64_t deadline, std::error_code& error, Call& call) {
    const user inside(*this, towards, error);
    if (!error) error = refusal(deadline);
    while (!error) {
      const ssize_t done = call(fd_);
      if (done >= 0) return static_cast<std::size_t>(done);
      error = after_failure(static_cast<int>(-done), towards, deadline);
    }
    return 0;
  }

  // `kept`: null, or where the duplicate of close_and_keep goes. A negative one is -errno, and the
  // socket stays open.
  bool close(bool at_once, int* kept) noexcept;
  [[nodiscard]] agent*& user_of(direction towards) noexcept;
  [[nodiscard]] bool in_use() noexcept;
  bool enter(direction towards, std::error_code& error);
  void leave(direction towards) noexcept;
  [[nodiscard]] static std::error_code refusal(std::int64_t deadline) noexcept;
  std::error_code after_failure(int number, direction towards, std::int64_t deadline) noexcept;
  std::error_code wait(direction towards, std::int64_t deadline) noexcept;
  std::error_code wait_as_guest(direction towards, std::int64_t deadline) noexcept;
  std::error_code register_in(const std::shared_ptr<event_loop>& loop) noexcept;
  [[nodiscard]] bool nothing_to_read() const noexcept;

  mutable spin_lock lock_;
  bool closed_ = false;
  bool orphaned_ = false;
  bool owns_path_ = false;  // set before it is shared
  const bool plain_tcp_;
  std::uint8_t foreign_waiters_ = 0;  // users that wait without the source
  int fd_;
  net::endpoint peer_;
  agent* users_[2]{};  // by direction
  fd_source* source_ = nullptr;
  std::shared_ptr<event_loop> loop_;  // of source_; set once
  receive_state received_;
  std::atomic<std::int64_t> expiry_[2]{no_deadline, no_deadline};  // by direction
};

}  // namespace ulexite::detail
