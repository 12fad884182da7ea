#pragma once

// Streams and listeners, over TCP or over Unix sockets: the family of the endpoint decides.
//
// Operations wait: a fiber is suspended, a plain thread blocks. All that wait are cancellation points. Each has two
// forms: one throws std::system_error, one sets a std::error_code. What they have in common:
//
//   errc::cancelled                 the fiber was asked to stop; the throwing form throws operation_cancelled
//   errc::deadline_exceeded         its deadline was over first; that throws deadline_exceeded. It compares equal to
//                                   timed_out too, so ask for it first
//   std::errc::timed_out            the stream's expiry was over first
//   std::errc::bad_file_descriptor  the stream is closed, or was closed while the operation waited
//   the system's own codes          as connection_reset, broken_pipe
//
// One fiber or thread may read, another write, and any close, at the same time. A second reader or writer gets a
// usage_error. The object itself must outlive the calls on it. A socket belongs to the runtime in which a fiber first
// waited on it; fibers of other runtimes may use it too, at a higher price. Objects may outlive the runtime.

#include <ulexite/net/endpoint.hpp>
#include <ulexite/runtime/suspend.hpp>

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite::detail {

class socket;

// Owns a socket; null is none.
class socket_handle {
 public:
  socket_handle() noexcept = default;
  explicit socket_handle(int fd);  // closes fd if there is no memory for the rest, and throws std::bad_alloc
  socket_handle(socket_handle&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  socket_handle& operator=(socket_handle&& other) noexcept {
    std::swap(socket_, other.socket_);
    other.reset();
    return *this;
  }
  ~socket_handle() { reset(); }

  void reset() noexcept;
  [[nodiscard]] socket* get() const noexcept { return socket_; }

 private:
  socket* socket_ = nullptr;
};

}  // namespace ulexite::detail

namespace ulexite::net {

// A connection. Movable while nobody uses it.
class tcp_stream {
 public:
  // No connection: every operation fails with bad_file_descriptor.
  tcp_stream() noexcept = default;
  // Takes over the descriptor of a connected stream socket (of socketpair, too) and makes it non-blocking. Throws
  // std::system_error, and then leaves it open.
  [[nodiscard]] static tcp_stream adopt(int fd);
  tcp_stream(tcp_stream&&) noexcept = default;
  tcp_stream& operator=(tcp_stream&&) noexcept = default;  // closes the former connection
  ~tcp_stream() = default;                                 // closes

  // Connects, with TCP_NODELAY on. Waits, no longer than `timeout` where one is given. Errors: connection_refused and
  // the like; what() names the endpoint.
  [[nodiscard]] static tcp_stream connect(const endpoint& to) { return connect_until(to, detail::no_deadline); }
  [[nodiscard]] static tcp_stream connect(const endpoint& to, std::error_code& error) {
    return connect_until(to, detail::no_deadline, error);
  }
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect(const endpoint& to, std::chrono::duration<Rep, Period> timeout) {
    return connect_until(to, detail::deadline_after(timeout));
  }
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect(const endpoint& to, std::chrono::duration<Rep, Period> timeout,
                                          std::error_code& error) {
    return connect_until(to, detail::deadline_after(timeout), error);
  }

  // Resolves `host` and connects to the first of its endpoints that answers; the last one's error is reported. A name
  // (not a number) blocks the whole worker while it is resolved: see resolve. The timeout counts from the resolution
  // on.
  [[nodiscard]] static tcp_stream connect(std::string_view host, std::uint16_t port) {
    return connect_until(host, port, detail::no_deadline);
  }
  [[nodiscard]] static tcp_stream connect(std::string_view host, std::uint16_t port, std::error_code& error) {
    return connect_until(host, port, detail::no_deadline, error);
  }
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect(std::string_view host, std::uint16_t port,
                                          std::chrono::duration<Rep, Period> timeout) {
    return connect_until(host, port, detail::deadline_after(timeout));
  }
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect(std::string_view host, std::uint16_t port,
                                          std::chrono::duration<Rep, Period> timeout, std::error_code& error) {
    return connect_until(host, port, detail::deadline_after(timeout), error);
  }

  // Reads what there is, at least one byte, at most `size`; waits while there is none. Returns the number of bytes, 0
  // at the end of the stream (or for size 0, at once).
  std::size_t read_some(void* data, std::size_t size, std::error_code& error);
  std::size_t read_some(void* data, std::size_t size);
  std::size_t read_some(std::span<std::byte> data) { return read_some(data.data(), data.size()); }
  // The same into several buffers, in their order. At most 1024 of them are used.
  std::size_t read_some(std::span<const iovec> buffers, std::error_code& error);

  // Reads until `size` bytes are there or the stream ends. Returns the number of bytes: fewer only at the end, or on an
  // error, when those before it are counted but by the throwing form not told.
  std::size_t read(void* data, std::size_t size, std::error_code& error);
  std::size_t read(void* data, std::size_t size);
  std::size_t read(std::span<std::byte> data) { return read(data.data(), data.size()); }

  // Writes what fits into the connection's buffer, at least one byte; waits while it is full. Returns the number of
  // bytes taken. Never raises SIGPIPE.
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error);
  std::size_t write_some(const void* data, std::size_t size);
  std::size_t write_some(std::span<const iovec> buffers, std::error_code& error);

  // Writes everything; waits as often as needed. Returns the number of bytes written, less than `size` only on an
  // error.
  std::size_t write(const void* data, std::size_t size, std::error_code& error);
  void write(const void* data, std::size_t size);
  std::size_t write(std::string_view text, std::error_code& error) { return write(text.data(), text.size(), error); }
  void write(std::string_view text) { write(text.data(), text.size()); }
  void write(std::span<const std::byte> data) { write(data.data(), data.size()); }

  // Writes all of several buffers, in their order, with as few system calls as it takes.
  std::size_t writev(std::span<const iovec> buffers, std::error_code& error);
  void writev(std::span<const iovec> buffers);

  // Ends the outgoing side: the peer reads to the end. Reading goes on. Never waits.
  void shutdown_write(std::error_code& error) noexcept;
  void shutdown_write();

  // Ends the connection. Whoever waits in a read or write of it is woken and fails with bad_file_descriptor; the
  // descriptor is closed when the last of them has left. Data written is still delivered. While a plain thread waits,
  // or a fiber of another runtime, the connection is shut down too, for other processes that share it as well. Again:
  // nothing. Any thread. No cancellation point.
  void close() noexcept;
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

  // TCP_NODELAY: send small writes at once. On in every connection made or accepted here. Nothing on a Unix socket.
  void set_nodelay(bool on);
  // SO_KEEPALIVE with the system's times: probe a silent peer, so that a dead one is noticed in the end. Off at first.
  void set_keepalive(bool on);

  // Throw std::system_error, as for a connection that was reset.
  [[nodiscard]] endpoint local_endpoint() const;
  [[nodiscard]] endpoint remote_endpoint() const;

  // The descriptor, -1 once closed. It stays this object's.
  [[nodiscard]] int native_handle() const noexcept;
  // The descriptor, which is the caller's now; the stream is closed. Throws usage_error while an operation is under
  // way.
  [[nodiscard]] int release();

 private:
  friend class tcp_listener;
  explicit tcp_stream(int fd) : socket_(fd) {}
  static tcp_stream connect_until(const endpoint& to, std::int64_t deadline, std::error_code& error);
  static tcp_stream connect_until(const endpoint& to, std::int64_t deadline);
  static tcp_stream connect_until(std::string_view host, std::uint16_t port, std::int64_t deadline,
                                  std::error_code& error);
  static tcp_stream connect_until(std::string_view host, std::uint16_t port, std::int64_t deadline);
  void set_expiry(std::int64_t deadline) noexcept;

  detail::socket_handle socket_;
};

struct listen_options {
  int backlog = 4096;       // connections that wait to be accepted; the system may allow fewer
  bool reuse_port = false;  // SO_REUSEPORT: several listeners share one port
};

// Accepts connections at an endpoint. Movable while nobody uses it.
class tcp_listener {
 public:
  // None: every operation fails with bad_file_descriptor.
  tcp_listener() noexcept = default;
  // Binds and listens. Port 0 takes a free one: see local_endpoint. A TCP address may be bound again while old
  // connections linger (SO_REUSEADDR). The path of a Unix socket must not exist; it is removed at the close. Never
  // waits. Throws std::system_error naming the endpoint.
  explicit tcp_listener(const endpoint& at, listen_options options = {});
  tcp_listener(tcp_listener&& other) noexcept;
  tcp_listener& operator=(tcp_listener&& other) noexcept;  // closes the former listener
  ~tcp_listener() { close(); }

  // The same as a function.
  [[nodiscard]] static tcp_listener listen(const endpoint& at, listen_options options = {}) {
    return tcp_listener(at, options);
  }

  // Waits for the next connection, and returns it with TCP_NODELAY on. One caller at a time. Connections that were
  // given up before are skipped. While the process or the system is out of descriptors or memory it waits for them: it
  // tries again every 10 ms.
  [[nodiscard]] tcp_stream accept();
  [[nodiscard]] tcp_stream accept(std::error_code& error);

  // Ends listening: a waiting accept fails with bad_file_descriptor. Connections not yet accepted are reset. Again:
  // nothing. Any thread. No cancellation point.
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept;

  // Where it listens, with the port that was chosen; stays after the close.
  [[nodiscard]] const endpoint& local_endpoint() const noexcept { return local_; }
  [[nodiscard]] int native_handle() const noexcept;

 private:
  detail::socket_handle socket_;
  endpoint local_;
};

}  // namespace ulexite::net
