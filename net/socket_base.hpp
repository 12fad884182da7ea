#pragma once

// What streams, listeners and datagram sockets have in common.
//
// Operations wait: a fiber is suspended, a plain thread blocks. All that wait are cancellation points. Each has two
// forms: one throws std::system_error, one sets a std::error_code. What they have in common:
//
//   errc::cancelled                 the fiber was asked to stop; the throwing form throws operation_cancelled
//   errc::deadline_exceeded         its deadline was over first; that throws deadline_exceeded. It compares equal to
//                                   timed_out too, so ask for it first
//   std::errc::timed_out            the socket's expiry was over first
//   std::errc::bad_file_descriptor  it is closed, or was closed while the operation waited
//   the system's own codes          as connection_reset, connection_refused
//
// What the throwing forms say names the peer, also when the connection was reset.
//
// One fiber or thread may read, another write, and any close, at the same time. A second reader or writer gets a
// usage_error. The object itself must outlive the calls on it. A socket belongs to the runtime in which a fiber first
// waited on it; fibers of other runtimes may use it too, at a higher price. Objects may outlive the runtime.

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

// Owns a socket; null is none.
class socket_handle {
 public:
  socket_handle() noexcept = default;
  // See socket. Closes fd if there is no memory for the rest, and throws std::bad_alloc.
  explicit socket_handle(int fd, bool plain_tcp = false);
  socket_handle(socket_handle&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  socket_handle& operator=(socket_handle&& other) noexcept {
    std::swap(socket_, other.socket_);
    other.reset();
    return *this;
  }
  ~socket_handle() { reset(); }

  void reset() noexcept;
  [[nodiscard]] socket* get() const noexcept { return socket_; }
  // The socket; where there is none null, and bad_file_descriptor.
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
  // Ends it. Whoever waits in an operation of it is woken and fails with bad_file_descriptor; the descriptor is closed
  // when the last of them has left. What was sent is still delivered. The path of a Unix socket that was bound here is
  // removed. While a plain thread waits, or a fiber of another runtime, the socket is shut down too, for other
  // processes that share it as well. Again: nothing. Any thread. No cancellation point.
  void close() noexcept;
  // Whether it is open. Never waits.
  [[nodiscard]] bool is_open() const noexcept;

  // Operations that begin, or are waiting anew, after that time fail with timed_out; those under way keep the expiry
  // they began with. Every operation asks, even one that need not wait. A read or write of several parts asks for each.
  template <class Rep, class Period>
  void expires_after(std::chrono::duration<Rep, Period> time) noexcept {
    set_expiry(detail::deadline_after(time));
  }
  template <class Clock, class Duration>
  void expires_at(std::chrono::time_point<Clock, Duration> time) noexcept {
    set_expiry(detail::deadline_at(time));
  }
  void expires_never() noexcept { set_expiry(detail::no_deadline); }
  // The same for reads (receiving, peeking) or for writes (sending) alone. The other direction keeps its expiry.
  template <class Rep, class Period>
  void reads_expire_after(std::chrono::duration<Rep, Period> time) noexcept {
    set_read_expiry(detail::deadline_after(time));
  }
  template <class Clock, class Duration>
  void reads_expire_at(std::chrono::time_point<Clock, Duration> time) noexcept {
    set_read_expiry(detail::deadline_at(time));
  }
  void reads_expire_never() noexcept { set_read_expiry(detail::no_deadline); }
  template <class Rep, class Period>
  void writes_expire_after(std::chrono::duration<Rep, Period> time) noexcept {
    set_write_expiry(detail::deadline_after(time));
  }
  template <class Clock, class Duration>
  void writes_expire_at(std::chrono::time_point<Clock, Duration> time) noexcept {
    set_write_expiry(detail::deadline_at(time));
  }
  void writes_expire_never() noexcept { set_write_expiry(detail::no_deadline); }

  // SO_RCVBUF and SO_SNDBUF: how much the system keeps of what arrives until it is read, and of what is written until
  // it is sent. A request: the system has a least and a most, and counts its own overhead too. TCP adapts its buffers
  // to the connection until they are set. Throw std::system_error. Any thread.
  void set_receive_buffer(std::size_t bytes);
  void set_send_buffer(std::size_t bytes);

  // Any option of setsockopt(2) and getsockopt(2), by its level, its name and a value of the option's own type, as
  // set_option(IPPROTO_TCP, TCP_USER_TIMEOUT, 5000) or option<linger>(SOL_SOCKET, SO_LINGER). Throw
  // std::system_error naming level and name, with invalid_argument if the option has fewer bytes than Value. Any thread.
  template <class Value>
    requires std::is_trivially_copyable_v<Value>
  void set_option(int level, int name, const Value& value) {
    set_option_bytes(level, name, &value, sizeof value);
  }
  // The value of an option, see set_option.
  template <class Value = int>
    requires std::is_trivially_copyable_v<Value>
  [[nodiscard]] Value option(int level, int name) const {
    Value value{};
    option_bytes(level, name, &value, sizeof value);
    return value;
  }

  // Its own and its peer's. Throw std::system_error, as for a connection that was reset (not_connected). Any thread.
  [[nodiscard]] endpoint local_endpoint() const;
  [[nodiscard]] endpoint remote_endpoint() const;

  // The descriptor, -1 once closed. It stays this object's.
  [[nodiscard]] int native_handle() const noexcept;
  // The descriptor, which is the caller's now, as is the path it is bound to; the socket is closed. Throws usage_error
  // while an operation is under way.
  [[nodiscard]] int release();

 protected:
  socket_base() noexcept = default;
  explicit socket_base(detail::socket_handle taken) noexcept : socket_(std::move(taken)) {}
  socket_base(socket_base&&) noexcept = default;
  socket_base& operator=(socket_base&&) noexcept = default;
  ~socket_base() = default;

  // Throws what `error` says, if anything, as met while `doing` this with the socket.
  void throw_if(const std::error_code& error, const char* doing) const {
    if (error) [[unlikely]]
      fail(error, doing);
  }
  // setsockopt. Throws std::system_error; `what` is the option's name.
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
