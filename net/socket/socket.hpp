#pragma once

// A socket and its users: the base of streams, listeners and datagram sockets.
//
// One reader and one writer may use it at a time, and any thread may close it at the same time. A shared one (of
// datagrams) has any number of them: one has the turn of its direction, and others pass: they make their system call,
// and fibers of the runtime that watches the socket queue for the turn if that would block. So one waits for an edge.
// When it leaves it gives the turn to the next, which tries first, because one edge may stand for several datagrams.
// Invariants, under the lock:
//   closed_           implies  source_ is null: no user waits for an edge, and none will
//   a user is inside  implies  fd_ is open and its number is this socket's
//   (a fiber that was abandoned in an operation no longer counts as a user)
//   a user that passes is counted in `passing`, or has its node in the queue
//   orphaned_         implies  closed_: the last user to leave deletes the object
//
// The descriptor is registered once, at the first wait of a fiber, and until the socket is closed. The source belongs
// to that fiber's runtime. Plain threads, and fibers of other runtimes, wait without it (the `guests`): a close wakes
// them by shutting the connection down.
//
// State
//   expiry_   a setting; nothing else depends on it.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/net/socket/receive_state.hpp>
#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite::detail {

class event_loop;
class fd_source;
class socket_wait;
struct event;

class socket {
 public:
  // Takes over `fd`, non-blocking. `plain_tcp`: with TCP_INQ on.
  socket(int fd, bool plain_tcp) noexcept;
  socket(const socket&) = delete;
  socket& operator=(const socket&) = delete;

  // Ends the connection for all its users. Returns true the first time. With `at_once` the system ends it now, and not
  // when the last user has left: data that was not sent yet may be lost. Any thread.
  bool close(bool at_once = false) noexcept;
  // Makes the system call `call(fd)`, which must never wait, beside operations under way. Keeps the descriptor open
  // while it exists. Returns the call's result, a number or -errno; -EBADF once closed. Any thread.
  template <class Call>
  int with_fd(Call&& call) noexcept {
    const std::lock_guard lock(lock_);
    return closed_ ? -EBADF : call(fd_);
  }
  // Sets the peer's endpoint. Error messages name it when the system has forgotten it. Any thread.
  void set_peer(const net::endpoint& peer) noexcept;
  [[nodiscard]] net::endpoint peer() const noexcept;
  // From now on several may read, and several may write. Called before others know of the socket. Throws
  // std::bad_alloc.
  void share();
  // From now on a close removes `path`, to which it is bound, unless another file has taken the path.
  void owns_path(std::string_view path) noexcept;
  // Ends the owner's use: closes the socket, and deletes it when no user is inside.
  void abandon() noexcept;
  // Returns the descriptor to the caller, and leaves the socket closed. Throws usage_error while a user is inside.
  int release();
  // Closes as close does, and returns a duplicate of the descriptor. The system's socket stays open, for other
  // processes too, and the path stays. Returns -1 if it is closed already. Throws usage_error while a plain thread, or
  // a fiber of another runtime, waits here, because only a shutdown could wake it. Throws std::system_error if the
  // system has no free descriptor.
  int close_and_keep();

  [[nodiscard]] int fd() const noexcept;
  [[nodiscard]] bool is_plain_tcp() const noexcept { return plain_tcp_; }
  [[nodiscard]] bool is_open() const noexcept { return fd() >= 0; }

  // Sets the limit of operations of one direction that begin later, in nanoseconds of the steady clock.
  void expires_at(direction side, std::int64_t deadline) noexcept {
    expiry_[static_cast<unsigned>(side)].store(deadline, std::memory_order_relaxed);  // a setting
  }
  [[nodiscard]] std::int64_t expiry(direction side) const noexcept {
    return expiry_[static_cast<unsigned>(side)].load(std::memory_order_relaxed);  // a setting
  }

  // Makes the system call `call(fd)`, which returns its result or -errno. Waits as often as the call would block. A
  // cancellation point. Errors: those of the call; bad_file_descriptor once closed; timed_out after the deadline;
  // errc::cancelled. Throws usage_error if another operation in this direction is under way and the socket is not
  // shared.
  template <class Call>
  std::size_t perform(direction side, std::int64_t deadline, std::error_code& error, Call&& call) {
    ssize_t done = 0;
    {
      const user inside(*this, side, deadline, error);
      while (!error && (done = call(fd_)) < 0) error = after_failure(static_cast<int>(-done), side, deadline);
    }
    if (deadline != never_wait) spend_budget();  // after an error too: a loop over failures must let others run
    return error ? 0 : static_cast<std::size_t>(done);
  }

  // The deadline of an operation that never waits: it fails with resource_unavailable_try_again instead.
  static constexpr std::int64_t never_wait = -1;

  // As perform, up to the expiry, or the deadline. receive takes a call that reads, call(fd, drained), and sets
  // `drained` if nothing was left. send takes a call that sends.
  template <class Call>
  std::size_t receive(std::error_code& error, Call&& call) {
    return receive(expiry(read_side), error, call);
  }
  template <class Call>
  std::size_t receive(std::int64_t deadline, std::error_code& error, Call&& call) {
    bool expect_would_block = true;
    return perform(read_side, deadline, error, [&](int fd) -> ssize_t {
      if (std::exchange(expect_would_block, false) && nothing_to_read()) return would_block;
      bool nothing_left = false;
      const ssize_t got = call(fd, nothing_left);
      if (got == 0 && !is_open()) return would_block;  // an end that close made
      if (got >= 0) received_.note_read(nothing_left);
      return got;
    });
  }
  template <class Call>
  std::size_t send(std::error_code& error, Call&& call) {
    return send(expiry(write_side), error, call);
  }
  template <class Call>
  std::size_t send(std::int64_t deadline, std::error_code& error, Call&& call) {
    return perform(write_side, deadline, error, [&](int fd) -> ssize_t {
      const std::uint32_t before = received_.before_send();
      const ssize_t sent = call(fd);
      if (sent > 0) received_.note_send(before);
      return sent;
    });
  }

  static const direction read_side, write_side;

 private:
  friend class socket_wait;

  // One user inside the socket, as a scope.
  class user {
   public:
    user(socket& used, direction side, std::int64_t deadline, std::error_code& error)
        : socket_(used), side_(side), inside_(used.enter(side, deadline, error)) {}
    ~user() {
      if (inside_) socket_.leave(side_);
    }
    user(const user&) = delete;
    user& operator=(const user&) = delete;

   private:
    socket& socket_;
    const direction side_;
    const bool inside_;
  };
  struct sharing;
  static const ssize_t would_block;

  ~socket();

  // `kept` is null, or receives the duplicate of close_and_keep. If it receives -errno, the socket stays open.
  bool close(bool at_once, int* kept) noexcept;
  [[nodiscard]] agent*& user_of(direction side) noexcept;
  [[nodiscard]] bool in_use() noexcept;
  bool enter(direction side, std::int64_t deadline, std::error_code& error);
  void leave(direction side) noexcept;
  std::error_code after_failure(int number, direction side, std::int64_t deadline);
  std::error_code wait(direction side, std::int64_t deadline);
  std::error_code wait_for_edge(direction side, std::int64_t deadline) noexcept;
  [[nodiscard]] bool arm(direction side, event& edge) noexcept;
  void disarm(direction side, event& edge) noexcept;
  agent* give_turn(direction side) noexcept;
  std::error_code take_turn(direction side, std::int64_t deadline, bool& had_it) noexcept;
  std::error_code queue_for_turn(direction side, std::int64_t deadline) noexcept;
  std::error_code wait_as_guest(direction side, std::int64_t deadline) noexcept;
  std::error_code register_in(const std::shared_ptr<event_loop>& loop) noexcept;
  [[nodiscard]] bool nothing_to_read() const noexcept;

  mutable spin_lock lock_;
  bool closed_ = false;
  bool orphaned_ = false;
  const bool plain_tcp_;
  int fd_;
  std::uint32_t foreign_waiters_ = 0;  // users that wait without the source
  agent* users_[2]{};                  // by direction; of a shared socket those with the turn
  fd_source* source_ = nullptr;
  std::shared_ptr<event_loop> loop_;  // of source_; set once
  receive_state received_;
  std::atomic<std::int64_t> expiry_[2]{no_deadline, no_deadline};  // by direction
  net::endpoint peer_;
  struct owned_path;
  std::unique_ptr<const owned_path> path_;  // set before others know of the socket
  std::unique_ptr<sharing> shared_;         // null: one user of each direction; set as path_
};

}  // namespace ulexite::detail
