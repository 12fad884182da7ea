#pragma once

// Streams and listeners, over TCP or over Unix sockets: the family of the endpoint decides.
// The rules of all operations (errors, threads, time limits) are in socket_base.hpp.

#include <ulexite/net/address.hpp>
#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/serve.hpp>
#include <ulexite/net/socket_base.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <sys/uio.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace ulexite::net {

// How to connect.
struct connect_options {
  std::optional<std::chrono::nanoseconds> timeout{};  // for all attempts together; none: only the fiber's deadline
  // The local address of the connection, and its local port unless that is 0. Endpoints of another family are skipped.
  // None: the system chooses.
  std::optional<endpoint> local{};
};

// A connection over TCP or a Unix socket. Movable while it is not in use. For its expiry, endpoints and descriptor see
// socket_base.
class tcp_stream : public socket_base {
 public:
  // No connection: every operation fails with bad_file_descriptor.
  tcp_stream() noexcept = default;
  // Takes over the descriptor of a connected stream socket, and makes it non-blocking. A socket of socketpair works
  // too. A kernel protocol on top of TCP, such as TLS, must be set up before. Throws std::system_error, and then leaves
  // the descriptor open.
  [[nodiscard]] static tcp_stream adopt(int fd);
  tcp_stream(tcp_stream&&) noexcept = default;
  tcp_stream& operator=(tcp_stream&&) noexcept = default;  // closes its own connection first
  ~tcp_stream() = default;                                 // closes

  // Connects, with TCP_NODELAY on. Waits, at most for the timeout of the options. Errors: connection_refused and others
  // of the system; connection_refused also if the system has connected the socket to itself. what() names the endpoint,
  // and the local one.
  [[nodiscard]] static tcp_stream connect(const endpoint& to, const connect_options& options = {});
  [[nodiscard]] static tcp_stream connect(const endpoint& to, const connect_options& options, std::error_code& error);

  // Connects to the first of several endpoints that answers, as in RFC 8305. Attempts alternate between the address
  // families. The next attempt starts when the last one has failed, or after 250 ms. If all fail, the error is that of
  // the last attempt. It is timed_out if the time passes first, and address_not_available for no endpoints. A
  // connection to a Unix listener with a full backlog fails at once.
  [[nodiscard]] static tcp_stream connect(std::span<const endpoint> to, const connect_options& options = {});
  [[nodiscard]] static tcp_stream connect(std::span<const endpoint> to, const connect_options& options,
                                          std::error_code& error);

  // Resolves the name of the address, if it has one (see resolve), and connects to the first of its endpoints that
  // answers. The timeout is for both together. what() of an error names the address, and the local one.
  [[nodiscard]] static tcp_stream connect(const address& to, const connect_options& options = {});
  [[nodiscard]] static tcp_stream connect(const address& to, const connect_options& options, std::error_code& error);

  // Only says what to write instead.
  template <class Text>
    requires(std::convertible_to<const Text&, std::string_view> && !std::convertible_to<const Text&, endpoint>)
  static tcp_stream connect(const Text&) {
    static_assert(sizeof(Text) == 0, "use connect(net::address::parse(text)) for a text such as \"host:80\"");
    return {};
  }
  // Former forms of connect, which 0.2 will not have.
  template <class To, std::convertible_to<relative_timeout> Time, std::same_as<std::error_code>... Error>
  [[deprecated("use connect(to, {.timeout = time}, ...)"), nodiscard]] static tcp_stream connect(const To& to,
                                                                                                 Time time,
                                                                                                 Error&... error) {
    return connect(to, within(time), error...);
  }
  template <class To>
  [[deprecated("use connect(to, {}, error)"), nodiscard]] static tcp_stream connect(const To& to,
                                                                                    std::error_code& error) {
    return connect(to, connect_options(), error);
  }
  template <std::convertible_to<relative_timeout> Time = relative_timeout, std::same_as<std::error_code>... Error>
  [[deprecated("use connect(net::address(host, port), options, ...)"), nodiscard]] static tcp_stream connect(
      std::string_view host, std::uint16_t port, Time time = {}, Error&... error) try {
    return connect(address(host, port), within(time), error...);
  } catch (const std::invalid_argument&) {
    if constexpr (sizeof...(error) == 0) throw;
    ((error = std::make_error_code(std::errc::invalid_argument)), ...);
    return {};
  }
  [[deprecated("use connect(net::address(host, port), {}, error)"), nodiscard]] static tcp_stream connect(
      std::string_view host, std::uint16_t port, std::error_code& error) try {
    return connect(address(host, port), connect_options(), error);
  } catch (const std::invalid_argument&) {
    error = std::make_error_code(std::errc::invalid_argument);
    return {};
  }

  // Reads the available bytes: at least one, at most `size`. Waits while there are none. Returns the number of bytes, 0
  // at the end of the stream. For size 0 it returns 0 without a wait. A read ends at urgent data (MSG_OOB), and the
  // next one reads what is behind them. No option gives that up for a cheaper read: the peer decides what it sends.
  std::size_t read_some(void* data, std::size_t size, std::error_code& error);
  std::size_t read_some(void* data, std::size_t size);
  // Reads as above into several buffers, in their order. Uses at most 1024 of them.
  std::size_t read_some(std::span<const iovec> buffers, std::error_code& error);
  std::size_t read_some(std::span<const iovec> buffers);

  // Reads until `size` bytes have arrived or the stream ends. Returns the number of bytes. It is smaller only at the
  // end or on an error. Then it counts the bytes before the error; the throwing form does not report them.
  std::size_t read(void* data, std::size_t size, std::error_code& error);
  std::size_t read(void* data, std::size_t size);

  // Copies the available bytes, but leaves them to be read: at least one, at most `size`. Waits while there are none.
  // Returns the number of bytes, 0 at the end of the stream. A second peek does not wait for more bytes.
  std::size_t peek(void* data, std::size_t size, std::error_code& error);
  std::size_t peek(void* data, std::size_t size);

  // Writes as much as the connection's buffer takes, at least one byte. Waits while the buffer is full. Returns the
  // number of bytes taken. Never raises SIGPIPE.
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error);
  std::size_t write_some(const void* data, std::size_t size);
  std::size_t write_some(std::span<const iovec> buffers, std::error_code& error);
  std::size_t write_some(std::span<const iovec> buffers);

  // Writes everything, and waits as often as needed. Returns the number of bytes written, less than `size` only on an
  // error.
  std::size_t write(const void* data, std::size_t size, std::error_code& error);
  void write(const void* data, std::size_t size);
  std::size_t write(std::string_view text, std::error_code& error) { return write(text.data(), text.size(), error); }
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Writes all of several buffers, in their order, with as few system calls as possible.
  std::size_t writev(std::span<const iovec> buffers, std::error_code& error);
  void writev(std::span<const iovec> buffers);

  // Former forms, which 0.2 will not have.
  [[deprecated("use read_some(data, size)")]] std::size_t read_some(std::span<std::byte> data) {
    return read_some(data.data(), data.size());
  }
  [[deprecated("use read(data, size)")]] std::size_t read(std::span<std::byte> data) {
    return read(data.data(), data.size());
  }
  [[deprecated("use write(data, size)")]] void write(std::span<const std::byte> data) {
    write(data.data(), data.size());
  }

  // Sends `size` bytes of a file from `offset` on, as a rule without copying them into the process (sendfile). `file`
  // is the descriptor of a regular file, for example file::native_handle(). Returns the number of bytes sent, less than
  // `size` only at the end of the file or on an error. The throwing form does not report this number. Waits as write
  // does.
  // First reads parts that are not in memory on the pool behind blocking(), because the disk would block the worker. Of
  // a file system without its own disk, such as NFS or FUSE, it sends copies that the pool has read.
  // Never raises SIGPIPE. Errors: also those of sendfile(2), such as invalid_seek for a pipe. invalid_argument
  // for an offset that no file has.
  std::size_t send_file(int file, std::uint64_t offset, std::size_t size, std::error_code& error);
  std::size_t send_file(int file, std::uint64_t offset, std::size_t size);

  // Ends the sending side: the peer reads the end of the stream. Reads continue. Never waits.
  void shutdown_write(std::error_code& error) noexcept;
  void shutdown_write();

  // Ends the receiving side. Reads, also a read that waits, return the data that has arrived and then the end of the
  // stream. The peer is not notified (the peer of a Unix socket gets broken_pipe). Writes continue. No effect if the
  // connection is closed or broken. Any thread. Never waits.
  void shutdown_read() noexcept;

  // Ends the connection as close does, but by a reset. The peer's reads and writes fail with connection_reset, and data
  // that neither side has read yet is lost. Use it to drop a misbehaving peer; it leaves no TIME_WAIT. On a Unix socket
  // it works as close.
  void abort() noexcept;

  // TCP_NODELAY: send small writes without delay. On in every connection made or accepted here. No effect on a Unix
  // socket.
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
  friend struct detail::socket_operations;
  friend class descriptor_passing;
  using socket_base::socket_base;
  // As read_some, write_some and peek, until `deadline` instead of the expiry.
  static std::size_t receive_some(detail::socket& from, std::span<const iovec> buffers, std::int64_t deadline,
                                  std::error_code& error);
  static std::size_t send_some(detail::socket& to, std::span<const iovec> buffers, std::int64_t deadline,
                               std::error_code& error);
  static std::size_t peek_some(detail::socket& from, void* data, std::size_t size, std::int64_t deadline,
                               std::error_code& error);
  static connect_options within(relative_timeout time);
  // The parts of connect to one endpoint: makes the socket; waits until it is connected, or `deadline`; throws.
  static tcp_stream to_connect(const endpoint& to, const connect_options& options, std::error_code& error);
  void connect_until(std::int64_t deadline, const endpoint& to, std::error_code& error);
  [[noreturn]] static void fail_to_connect(const std::error_code& error, const std::string& to,
                                           const connect_options& options);
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
  // No listener: every operation fails with bad_file_descriptor.
  tcp_listener() noexcept = default;
  // Binds and listens. Port 0 takes a free port: see local_endpoint. A TCP address may be bound again while old
  // connections linger (SO_REUSEADDR). The path of a Unix socket must not exist; the close removes it. Never waits.
  // Throws std::system_error that names the endpoint.
  explicit tcp_listener(const endpoint& at, listen_options options = {});
  tcp_listener(tcp_listener&& other) noexcept;
  tcp_listener& operator=(tcp_listener&& other) noexcept;  // closes its own listener first
  ~tcp_listener() { close(); }

  // Takes over the descriptor of a listening stream socket, and makes it non-blocking. The descriptor may be from
  // systemd (socket activation) or from an earlier process. Such a process may keep the socket. So the close leaves it
  // listening there, with its backlog and the path of a Unix socket. Throws std::system_error, with invalid_argument if
  // it does not listen, and then leaves the descriptor open.
  [[nodiscard]] static tcp_listener adopt(int fd);

  // Makes a tcp_listener, as the constructor does.
  [[nodiscard]] static tcp_listener listen(const endpoint& at, listen_options options = {}) {
    return tcp_listener(at, options);
  }
  // Listens at an address that a user has given: at the first of its endpoints at which it can. Waits for a name, and
  // is a cancellation point then. Throws as address::resolve does, or the error of the last endpoint.
  [[nodiscard]] static tcp_listener listen(const address& at, listen_options options = {});

  // Waits for the next connection, and returns it with TCP_NODELAY on. One caller at a time. Also returns a connection
  // that its client has already ended; after a reset a read fails. Skips one that accept(2) reports as failed. While
  // the process or the system lacks descriptors or memory, tries again every 10 ms; the first time it says so on stderr
  // (runtime_metrics::accepts_refused counts the tries).
  [[nodiscard]] tcp_stream accept();
  [[nodiscard]] tcp_stream accept(std::error_code& error);
  // As above, and sets `peer` to the peer's endpoint, without a system call. It is known even after a reset of the
  // connection.
  [[nodiscard]] tcp_stream accept(endpoint& peer);
  [[nodiscard]] tcp_stream accept(endpoint& peer, std::error_code& error);

  // Accepts connections and calls handler(tcp_stream&) for each, in a fiber of `group`, until the listener is closed.
  // It also accepts the connections in the backlog at the close. Connections that are new then get serve_options::grace
  // to send their first request. After that all connections end, and serve returns:
  //
  // - their reads reach the end of the stream, after the data that has arrived (tcp_stream::shutdown_read). But for a
  //   handler that takes (tcp_stream&, std::stop_token), the token reports the close, and its reads continue. A handler
  //   that forwards or stores data should take the token: otherwise it cannot see that the stream was cut. One that
  //   moves the stream out must take it, because the other handlers' streams are ended where they are;
  // - after drain_time the group is asked to stop, and serve still waits for it. So give serve its own group.
  //
  // serve owns the stream, and closes it when the handler returns. Many fibers call the handler at the same time,
  // always the same object. A handler may be a coroutine that returns a task<>; then a connection that waits in
  // co_readable has no stack. An exception of the handler ends only its own connection: see serve_options::on_error. If
  // descriptors, memory or fibers (max_fibers) run out, connections wait. A connection that still waits at the close,
  // for a fiber or in the backlog, is closed if there is no room for it within drain_time, and one of the backlog also
  // if there is no descriptor for it.
  //
  // For fibers: elsewhere it throws errc::no_runtime. A cancellation point; when it throws, the group was asked to stop
  // and the connections have ended. Throws std::system_error when the listener breaks. In reports the fibers of
  // connections are spawned at `where`.
  template <class Handler>
  void serve(task_group& group, Handler handler, const serve_options& options = {},
             std::source_location where = std::source_location::current()) {
    static_assert(std::is_invocable_v<Handler&, tcp_stream&> ||
                      std::is_invocable_v<Handler&, tcp_stream&, const std::stop_token&>,
                  "the handler of serve takes (tcp_stream&), or (tcp_stream&, std::stop_token)");
    const auto start = [&handler](task_group& in, auto until, auto who, std::source_location place) {
      return in.try_spawn_until([&handler, who = std::move(who)] { return who->run(handler); }, until, place);
    };
    detail::server(*this, group, start, options, where).run();
  }
  // Serves as above, in a context or a runtime. In a concurrent_context the connections share data without locks; in a
  // parallel_context they have their own workers.
  template <class Context, class Handler>
    requires requires(Context& context) { context.spawn([] {}).get(); }
  void serve(Context& context, Handler handler, const serve_options& options = {},
             std::source_location where = std::source_location::current()) {
    detail::check_may_wait(detail::this_agent(), detail::wait_kind::join);  // before a fiber uses this frame
    const auto run = [&] {
      task_group group;
      serve(group, std::move(handler), options, where);
    };
    auto server = context.spawn(run, where);
    detail::await_server(server);
  }

  // A token that is set when the listener is closed, just before it ends listening.
  [[nodiscard]] std::stop_token closing_token() const noexcept { return closing_.get_token(); }

  // Ends listening: a waiting accept fails with bad_file_descriptor, and may then destroy the listener. Connections
  // that were not accepted yet are reset, unless `serve` accepts them. An adopted socket keeps listening in other
  // processes, unless a plain thread or a fiber of another runtime waits in accept here: only a shutdown wakes those,
  // and it ends the socket everywhere. A second close does nothing, and does not wait for the first. Any thread. Not a
  // cancellation point.
  void close() noexcept;
  // Whether it is open. Never waits.
  [[nodiscard]] bool is_open() const noexcept;

  // Gives the descriptor to the caller, for another process or for adopt, and closes the object. The socket continues
  // to listen: no connection is lost, and the backlog stays. As with close, accept and serve end. The path of a Unix
  // socket stays. Returns -1 if the listener is closed. Throws usage_error while a plain thread, or a fiber of another
  // runtime, waits in accept. Throws std::system_error for a lack of descriptors. Any thread. Not a cancellation point.
  [[nodiscard]] int release();

  // The endpoint on which it listens, with the chosen port. Valid after the close too.
  [[nodiscard]] const endpoint& local_endpoint() const noexcept { return local_; }
  // The descriptor, which the object keeps; -1 once closed.
  [[nodiscard]] int native_handle() const noexcept;

 private:
  friend class detail::server;
  friend struct detail::socket_operations;
  [[noreturn]] static void fail_to_accept(const tcp_listener& at, const std::error_code& error);
  // Waits as accept, until `deadline`.
  tcp_stream accept_until(std::int64_t deadline, endpoint& peer, std::error_code& error);
  // Accepts without waiting. Fails with resource_unavailable_try_again if no connection waits. Any thread.
  tcp_stream accept_at_once(std::error_code& error);
  tcp_stream accepted(int fd, const sockaddr_storage& peer, socklen_t peer_size) const;
  void note_scarcity(const std::error_code& error) noexcept;

  detail::socket_handle socket_;
  endpoint local_;
  std::stop_source closing_{std::nostopstate};
  bool adopted_ = false;
  bool told_of_scarcity_ = false;
};

}  // namespace ulexite::net
