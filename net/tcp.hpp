#pragma once

// Streams and listeners, over TCP or over Unix sockets: the family of the endpoint decides.
// What their operations have in common, errors and who may call them, is said in socket_base.hpp.

#include <ulexite/net/address.hpp>
#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/serve.hpp>
#include <ulexite/net/socket_base.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace ulexite::net {

// How to connect.
struct connect_options {
  std::optional<std::chrono::nanoseconds> timeout{};  // for all of it together; none: no limit but the fiber's deadline
  // The address, and the port unless that is 0, that the connection comes from. Endpoints of another family are passed
  // over. None: the system chooses.
  std::optional<endpoint> local{};
};

// A connection over TCP or a Unix socket. Movable while it is not in use. For its expiry, endpoints and descriptor see
// socket_base.
class tcp_stream : public socket_base {
 public:
  // No connection: every operation fails with bad_file_descriptor.
  tcp_stream() noexcept = default;
  // Takes over the descriptor of a connected stream socket, also of socketpair, and makes it non-blocking. A kernel
  // protocol on top of TCP, such as TLS, must be set up before. Throws std::system_error, and then leaves the
  // descriptor open.
  [[nodiscard]] static tcp_stream adopt(int fd);
  tcp_stream(tcp_stream&&) noexcept = default;
  tcp_stream& operator=(tcp_stream&&) noexcept = default;  // closes the former connection
  ~tcp_stream() = default;                                 // closes

  // Connects, with TCP_NODELAY on. Waits, no longer than `timeout` where one is given. Errors: connection_refused and
  // the like, also where the system has connected the socket to itself; what() names the endpoint.
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

  // Connects to whichever of several endpoints answers first, in the manner of RFC 8305: the two address families in
  // turn, the next attempt when the last one has failed or after 250 ms. When none answers, the error is the last
  // one's.
  [[nodiscard]] static tcp_stream connect(std::span<const endpoint> to, std::error_code& error) {
    return connect_until(to, detail::no_deadline, error);
  }
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect(std::span<const endpoint> to, std::chrono::duration<Rep, Period> timeout,
                                          std::error_code& error) {
    return connect_until(to, detail::deadline_after(timeout), error);
  }

  // Resolves `host` (see resolve) and connects to whichever of its endpoints answers first, as above. The timeout is
  // for both together.
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

  // Connects to an address, whose name it resolves, or to an endpoint, as above, with options. what() of an error names
  // the address, and the local one.
  [[nodiscard]] static tcp_stream connect(const address& to, const connect_options& options = {});
  [[nodiscard]] static tcp_stream connect(const address& to, const connect_options& options, std::error_code& error);

  // Reads what there is, at least one byte, at most `size`; waits while there is none. Returns the number of bytes, 0
  // at the end of the stream (or for size 0, at once).
  std::size_t read_some(void* data, std::size_t size, std::error_code& error);
  std::size_t read_some(void* data, std::size_t size);
  std::size_t read_some(std::span<std::byte> data) { return read_some(data.data(), data.size()); }
  // The same into several buffers, in their order. At most 1024 of them are used.
  std::size_t read_some(std::span<const iovec> buffers, std::error_code& error);

  // Reads until `size` bytes have arrived or the stream ends. Returns the number of bytes. It is smaller only at the
  // end or on an error. Then it counts the bytes before the error; the throwing form does not report them.
  std::size_t read(void* data, std::size_t size, std::error_code& error);
  std::size_t read(void* data, std::size_t size);
  std::size_t read(std::span<std::byte> data) { return read(data.data(), data.size()); }

  // Copies what there is, at least one byte, at most `size`, and leaves it to be read; waits while there is none.
  // Returns the number of bytes, 0 at the end of the stream. A second peek of the same bytes does not wait for more.
  std::size_t peek(void* data, std::size_t size, std::error_code& error);
  std::size_t peek(void* data, std::size_t size);

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

  // Sends `size` bytes of a file from `offset` on, without copying them into the process (sendfile). `file` is the
  // descriptor of a regular file, as os's file::native_handle(). Returns the number of bytes sent, less than `size` only
  // at the end of the file or on an error; the throwing form does not report them. Waits as write does. A part that is
  // not in memory is read on the pool behind blocking() first, because the disk would hold up the worker. Never raises
  // SIGPIPE. Errors: also those of sendfile(2), as invalid_argument for a pipe.
  std::size_t send_file(int file, std::uint64_t offset, std::size_t size, std::error_code& error);
  std::size_t send_file(int file, std::uint64_t offset, std::size_t size);

  // Ends the sending side: the peer reads to the end. Reads continue. Never waits.
  void shutdown_write(std::error_code& error) noexcept;
  void shutdown_write();

  // Ends the receiving side. Reads, also one that waits, return the data that has arrived and then the end of the
  // stream. The peer is not notified (the peer of a Unix socket meets broken_pipe). Writes continue. No effect if the
  // connection is closed or broken. Any thread. Never waits.
  void shutdown_read() noexcept;

  // Ends the connection as close does, but by a reset. The peer's reads and writes fail with connection_reset, and data
  // that neither side has read yet is lost. Use it to drop a misbehaving peer; it leaves no TIME_WAIT. On a Unix socket
  // the same as close.
  void abort() noexcept;

  // TCP_NODELAY: send small writes at once. On in every connection made or accepted here. No effect on a Unix socket.
  void set_nodelay(bool on);
  // SO_KEEPALIVE: probe a silent peer, so that a dead peer is detected; then reads and writes fail with timed_out. Off
  // at first. No effect on a Unix socket. The first form uses the system's times (hours). The second probes after
  // `idle` without data from the peer, and then after each `interval`; `count` probes without an answer end the
  // connection. Throw std::system_error, with invalid_argument for times or a count below 1.
  void set_keepalive(bool on);
  void set_keepalive(std::chrono::seconds idle, std::chrono::seconds interval, int count);

 private:
  friend class tcp_listener;
  friend class detail::server;
  friend class descriptor_passing;
  using socket_base::socket_base;
  static tcp_stream connect_until(const endpoint& to, std::int64_t deadline, std::error_code& error,
                                  const std::optional<endpoint>& local = std::nullopt);
  static tcp_stream connect_until(const endpoint& to, std::int64_t deadline);
  static tcp_stream connect_until(std::span<const endpoint> to, std::int64_t deadline, std::error_code& error,
                                  const std::optional<endpoint>& local = std::nullopt);
  static tcp_stream connect_until(std::string_view host, std::uint16_t port, std::int64_t deadline,
                                  std::error_code& error);
  static tcp_stream connect_until(std::string_view host, std::uint16_t port, std::int64_t deadline);
  void set_tcp_option(int name, int value, const char* what);
};

// How a tcp_listener listens.
struct listen_options {
  int backlog = 4096;       // connections that wait to be accepted; the system may allow fewer
  bool reuse_port = false;  // SO_REUSEPORT: several listeners share one port
};

// Accepts connections at an endpoint. Movable while it is not in use.
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

  // Takes over the descriptor of a stream socket that listens, as from systemd (socket activation) or from an earlier
  // process, and makes it non-blocking. The path of a Unix socket stays at the close. Throws std::system_error, with
  // invalid_argument if it does not listen, and then leaves the descriptor open.
  [[nodiscard]] static tcp_listener adopt(int fd);

  // The same as a function.
  [[nodiscard]] static tcp_listener listen(const endpoint& at, listen_options options = {}) {
    return tcp_listener(at, options);
  }
  // Listens where a user said: at the first endpoint of the address at which it can. Waits for a name, and is a
  // cancellation point then. Throws as address::resolve does, or the error of the last endpoint.
  [[nodiscard]] static tcp_listener listen(const address& at, listen_options options = {});

  // Waits for the next connection, and returns it with TCP_NODELAY on. One caller at a time. Connections that were
  // given up before are skipped. While the process or the system is out of descriptors or memory it waits for them: it
  // tries again every 10 ms.
  [[nodiscard]] tcp_stream accept();
  [[nodiscard]] tcp_stream accept(std::error_code& error);
  // The same, and sets `peer` to the other end's endpoint, without a system call. It is known even if the connection
  // has been reset since.
  [[nodiscard]] tcp_stream accept(endpoint& peer);
  [[nodiscard]] tcp_stream accept(endpoint& peer, std::error_code& error);

  // Accepts connections and calls handler(tcp_stream&) for each, in a fiber of `group`, until the listener is closed.
  // It also accepts the connections in the backlog at the close. New connections then get a grace for their first
  // request (serve_options::grace). After that all connections end, and serve returns:
  //
  // - their reads reach the end of the stream, after the data that has arrived (tcp_stream::shutdown_read). But a
  //   handler that takes (tcp_stream&, std::stop_token) learns of the close by the token, and its reads continue. A
  //   handler that forwards or stores data should take the token: otherwise it cannot see that the stream was cut;
  // - after drain_time the group is asked to stop, and serve still waits for it. So give serve a group of its own.
  //
  // serve owns the stream, and closes it when the handler returns. Many fibers call the handler at the same time,
  // always the same object. An exception of the handler ends only its own connection: see serve_options::on_error. If
  // descriptors, memory or fibers (max_fibers) run out, connections wait. At the close, a connection that still waits
  // for a fiber is closed. So is a connection of the backlog for which there is no descriptor, or no room within
  // drain_time.
  //
  // For fibers. A cancellation point; when it throws, the group was asked to stop and the connections have ended.
  // Throws std::system_error when the listener breaks.
  template <class Handler>
    requires std::is_invocable_v<Handler&, tcp_stream&> || std::is_invocable_v<Handler&, tcp_stream&, std::stop_token>
  void serve(task_group& group, Handler handler, const serve_options& options = {}) {
    const auto run_handler = [&handler](tcp_stream& stream, const std::stop_token& closing) {
      if constexpr (std::is_invocable_v<Handler&, tcp_stream&, std::stop_token>) {
        std::invoke(handler, stream, closing);
      } else {
        const std::stop_callback end_reads(closing, [&stream]() noexcept { stream.shutdown_read(); });
        std::invoke(handler, stream);
      }
    };
    detail::server(*this, group, run_handler, options).run();
  }
  // The same in a context: a concurrent_context, so that the connections share data without locks, a parallel_context, so
  // that they have workers of their own, or a runtime.
  template <class Context, class Handler>
    requires requires(Context& context) { context.spawn([] {}).get(); }
  void serve(Context& context, Handler handler, const serve_options& options = {}) {
    auto server = context.spawn([&] {
      task_group group;
      serve(group, std::move(handler), options);
    });
    const std::stop_callback passed_on(this_fiber::get_stop_token(), [&] { server.request_stop(); });
    server.get();
  }

  // A token that is set when the listener is closed, just before connecting becomes impossible.
  [[nodiscard]] std::stop_token closing_token() const noexcept { return closing_.get_token(); }

  // Ends listening: a waiting accept fails with bad_file_descriptor, and may then destroy the listener. Connections
  // that were not accepted yet are reset, unless `serve` accepts them. A second close does nothing. Any thread. Not a
  // cancellation point.
  void close() noexcept;
  // Whether it is open. Never waits.
  [[nodiscard]] bool is_open() const noexcept;

  // Closes the listener here, and returns its descriptor, which is the caller's: for another process, or for adopt. It
  // goes on listening, so no connection is lost: those in the backlog stay there. As with close, accept and serve end.
  // The path of a Unix socket stays. -1 if it is closed. Throws usage_error while a plain thread, or a fiber of another
  // runtime, waits in accept; std::system_error for a lack of descriptors. Any thread. Not a cancellation point.
  [[nodiscard]] int release();

  // Where it listens, with the chosen port. Valid after the close too.
  [[nodiscard]] const endpoint& local_endpoint() const noexcept { return local_; }
  // The descriptor, -1 once closed. It stays this object's.
  [[nodiscard]] int native_handle() const noexcept;

 private:
  friend class detail::server;
  // Fails with resource_unavailable_try_again when none waits. Any thread.
  tcp_stream accept_at_once(std::error_code& error);
  tcp_stream accepted(int fd, const sockaddr_storage& peer, socklen_t peer_size) const;

  detail::socket_handle socket_;
  endpoint local_;
  std::stop_source closing_{std::nostopstate};
};

}  // namespace ulexite::net
