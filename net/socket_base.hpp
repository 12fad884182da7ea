#pragma once

// Common rules and functions of streams, listeners and datagram sockets.
//
// Operations wait: a fiber is suspended, a plain thread blocks. All operations that wait are cancellation points. Each
// has two forms: one throws std::system_error, one sets a std::error_code. Their common errors:
//
//   errc::cancelled                 the fiber was asked to stop; the throwing form throws operation_cancelled
//   errc::deadline_exceeded         the fiber's deadline passed first; the throwing form throws deadline_exceeded. It
//                                   also compares equal to timed_out, so check for it first
//   std::errc::timed_out            the socket's expiry passed first
//   std::errc::bad_file_descriptor  the socket is closed, or was closed while the operation waited
//   the system's own codes          such as connection_reset, connection_refused
//
// The exceptions name the peer, also when the connection was reset.
//
// One fiber or thread may read, another write, and any close, at the same time. A second reader or writer gets a
// usage_error. Only a udp_socket may have any number of them: each datagram goes to one receiver. The object must
// outlive the calls on it. A socket belongs to the runtime of the fiber that first waited on it. Fibers of other
// runtimes may use it too, at a higher cost. Objects may outlive the runtime.

#include <ulexite/net/endpoint.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <type_traits>
#include <utility>

namespace ulexite::detail {

class socket;
struct socket_operations;

// Owns a socket, or none.
class socket_handle {
 public:
  socket_handle() noexcept = default;
  // Takes over `fd`, see socket. If memory runs out, closes `fd` and throws std::bad_alloc.
  explicit socket_handle(int fd, bool plain_tcp = false);
  socket_handle(socket_handle&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  socket_handle& operator=(socket_handle&& other) noexcept {
    socket_handle taken(std::move(other));  // so that a move to itself changes nothing
    std::swap(socket_, taken.socket_);
    return *this;
  }
  ~socket_handle() { reset(); }

  void reset() noexcept;
  [[nodiscard]] socket* get() const noexcept { return socket_; }
  // The socket. If there is none, returns null and sets bad_file_descriptor.
  [[nodiscard]] socket* get(std::error_code& error) const noexcept {
    error = socket_ ? std::error_code() : std::make_error_code(std::errc::bad_file_descriptor);
    return socket_;
  }

 private:
  socket* socket_ = nullptr;
};

}  // namespace ulexite::detail

namespace ulexite::net {

// The common part of tcp_stream and udp_socket, which are the types to use. None of its functions waits.
class socket_base {
 public:
  // Closes the socket. Wakes its waiters; their operations fail with bad_file_descriptor. The descriptor is closed when
  // the last of these operations has returned. Sent data is still delivered. Removes the path of a Unix socket that was
  // bound here. If a plain thread or a fiber of another runtime waits, also shuts the socket down, for other processes
  // that share it too. A second call does nothing. With an SO_LINGER above 0 the system may block the thread. Any
  // thread. Not a cancellation point.
  void close() noexcept;
  // Whether it is open. Never waits.
  [[nodiscard]] bool is_open() const noexcept;

  // Limits the operations that start from now on; operations under way keep their limit. An operation past its limit
  // fails with timed_out, even if it would not have to wait. Reads and writes of several parts check before each part.
  void expires_after(relative_timeout time) noexcept { set_expiry(time.deadline()); }
  void expires_at(absolute_timeout time) noexcept { set_expiry(time.deadline()); }
  void expires_never() noexcept { set_expiry(detail::no_deadline); }
  // Sets the limit of reads (receiving, peeking) or of writes (sending) alone. The other direction keeps its limit.
  void reads_expire_after(relative_timeout time) noexcept { set_read_expiry(time.deadline()); }
  void reads_expire_at(absolute_timeout time) noexcept { set_read_expiry(time.deadline()); }
  void reads_expire_never() noexcept { set_read_expiry(detail::no_deadline); }
  void writes_expire_after(relative_timeout time) noexcept { set_write_expiry(time.deadline()); }
  void writes_expire_at(absolute_timeout time) noexcept { set_write_expiry(time.deadline()); }
  void writes_expire_never() noexcept { set_write_expiry(detail::no_deadline); }

  // Request the size of the system's buffers: for data that was not read yet (SO_RCVBUF), and not sent yet (SO_SNDBUF).
  // The system has a lower and an upper limit, and counts its own overhead too. TCP adapts its buffers to the
  // connection until they are set. Throw std::system_error. Any thread.
  void set_receive_buffer(std::size_t bytes);
  void set_send_buffer(std::size_t bytes);

  // Sets an option of setsockopt(2), given its level, its name and a value of its type: set_option(IPPROTO_TCP,
  // TCP_USER_TIMEOUT, 5000). Throws std::system_error that names level and name. Any thread.
  template <class Value>
    requires std::is_trivially_copyable_v<Value>
  void set_option(int level, int name, const Value& value) {
    set_option_bytes(level, name, &value, sizeof value);
  }
  // The value of an option of getsockopt(2): option<linger>(SOL_SOCKET, SO_LINGER). Throws as set_option, with
  // invalid_argument if the option has fewer bytes than Value. Any thread.
  template <class Value = int>
    requires std::is_trivially_copyable_v<Value>
  [[nodiscard]] Value option(int level, int name) const {
    Value value{};
    option_bytes(level, name, &value, sizeof value);
    return value;
  }

  // The endpoints of the socket and of its peer. Throw std::system_error, for example not_connected after a reset. Any
  // thread.
  [[nodiscard]] endpoint local_endpoint() const;
  [[nodiscard]] endpoint remote_endpoint() const;

  // The descriptor, which the object keeps; -1 once closed.
  [[nodiscard]] int native_handle() const noexcept;
  // Gives the descriptor to the caller, with the path to which it is bound, and closes the object. Throws usage_error
  // while an operation is under way.
  [[nodiscard]] int release();

 protected:
  socket_base() noexcept = default;
  explicit socket_base(detail::socket_handle taken) noexcept : socket_(std::move(taken)) {}
  socket_base(socket_base&&) noexcept = default;
  socket_base& operator=(socket_base&&) noexcept = default;
  ~socket_base() = default;

  // Throws `error`, if it is one. The message says what the caller was `doing` with the socket.
  void throw_if(const std::error_code& error, const char* doing) const {
    if (error) [[unlikely]]
      fail(error, doing);
  }
  // Calls setsockopt. Throws std::system_error; `what` is the option's name.
  void set_named_option(int level, int name, int value, const char* what);

  detail::socket_handle socket_;

 private:
  [[noreturn, gnu::cold]] void fail(const std::error_code& error, const char* doing) const;
  void set_option_bytes(int level, int name, const void* value, std::size_t size);
  void option_bytes(int level, int name, void* value, std::size_t size) const;
  void set_expiry(std::int64_t deadline) noexcept;
  void set_read_expiry(std::int64_t deadline) noexcept;
  void set_write_expiry(std::int64_t deadline) noexcept;
};

}  // namespace ulexite::net
