#pragma once

// The calls by which streams and listeners set a socket up.

#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket_base.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace ulexite::detail {

// Throws `error`: as operation_cancelled, or as std::system_error that says `what` was being done.
[[noreturn]] void fail(std::error_code error, const std::string& what);

// The pause before the next try after a lack of descriptors, memory or fibers, in nanoseconds.
inline constexpr std::int64_t scarcity_pause = 10'000'000;

// Sleeps until `deadline`. A cancellation point, reported as errc::cancelled.
std::error_code pause_until(std::int64_t deadline);

// Pauses before the next try of a call that becomes ready without an edge.
std::error_code pause_before_retry(std::int64_t deadline);

// Whether make_socket makes a TCP socket.
inline bool is_plain_tcp(const net::endpoint& at, int type) noexcept {
  return type == SOCK_STREAM && at.family() != net::address_family::local;
}

// Makes a non-blocking socket of `type` for an endpoint's family. A TCP socket has TCP_NODELAY and TCP_INQ on. -1 on an
// error.
int make_socket(const net::endpoint& at, int type, std::error_code& error) noexcept;

// Prepares a descriptor that was opened elsewhere for a socket. Throws std::system_error.
void make_non_blocking(int fd);

// Binds the socket, with SO_REUSEPORT if `reuse_port`. The socket's close removes a path. -errno on an error.
int bind(socket& made, const net::endpoint& at, bool reuse_port) noexcept;

// Makes a socket by make_socket, and prepares it by `set_up(socket)`, which returns -errno on an error. Then it returns
// none. Throws std::bad_alloc.
template <class SetUp>
socket_handle make_prepared(const net::endpoint& at, int type, std::error_code& error, SetUp&& set_up) {
  const int fd = make_socket(at, type, error);
  if (error) return {};
  socket_handle made(fd, is_plain_tcp(at, type));
  if (const int result = set_up(*made.get()); result < 0) error.assign(-result, std::system_category());
  return error ? socket_handle() : std::move(made);
}

// As above, for a socket that is bound. Throws std::system_error that names the action ("listening at") and the
// endpoint.
template <class SetUp>
socket_handle make_bound(const net::endpoint& at, int type, const char* doing, SetUp&& set_up) {
  std::error_code error;
  socket_handle made = make_prepared(at, type, error, set_up);
  if (error) throw std::system_error(error, std::string("ulexite: ") + doing + " " + at.str());
  return made;
}

// As make_prepared, for a stream socket that connects to `to`, from `local` if given.
socket_handle make_to_connect(const net::endpoint& to, const std::optional<net::endpoint>& local,
                              std::error_code& error);

// Connects a socket of make_to_connect. Waits, until `deadline`.
void connect(socket& from, const net::endpoint& to, std::int64_t deadline, std::error_code& error);

// Ends a TCP connection of a socket to itself, and sets connection_refused. Such a connection arises if no socket
// listens at a port of this machine, and the system gives this port to the connecting socket.
void refuse_itself(const socket_handle& made, const net::endpoint& to, std::error_code& error);

// Closes a TCP connection by a reset.
void reset(const socket_handle& whose) noexcept;

// The endpoint of the socket or of its peer, by kernel::getsockname or kernel::getpeername. Throws std::system_error.
net::endpoint name_of(const socket_handle& whose, int (*ask)(int, sockaddr*, socklen_t*) noexcept);

// The endpoint for an address from a system call. Throws std::system_error for a family without endpoints.
net::endpoint endpoint_of(const sockaddr_storage& address, socklen_t size);

// Asks the system for the peer of a socket that was made elsewhere, and keeps it for messages.
void learn_peer(const socket_handle& whose) noexcept;

// For messages: the peer's endpoint, if known; otherwise "a peer of" the socket's own endpoint, or the descriptor's
// number.
std::string peer_text(const socket_handle& whose);

// setsockopt. -errno on an error.
template <class Value>
int set_option(int fd, int level, int name, const Value& value) noexcept {
  return kernel::setsockopt(fd, level, name, &value, sizeof value);
}

// Calls socket::with_fd, or fails if there is no socket. Returns the result of `call`; sets `error` for -errno.
template <class Call>
int with_fd(const socket_handle& handle, std::error_code& error, Call&& call) noexcept {
  socket* const used = handle.get(error);
  const int result = used ? used->with_fd(call) : 0;
  if (result < 0) error.assign(-result, std::system_category());
  return result;
}

// As socket::perform. `call` may fail with EAGAIN without a later edge, as on Unix sockets. Repeats the call every
// millisecond instead of waiting for an edge. So an attempt of a coroutine waits here, on its stack, up to the expiry.
template <class Call>
std::size_t perform_by_polling(socket& used, direction side, std::int64_t deadline, std::error_code& error,
                               Call&& call) {
  if (deadline == socket::never_wait) deadline = used.expiry(side);
  for (;;) {
    bool blocked = false;
    const std::size_t done = used.perform(side, deadline, error, [&](int fd) -> ssize_t {
      const ssize_t result = call(fd);
      blocked = result == -EAGAIN;
      return blocked ? 0 : result;
    });
    if (error || !blocked) return done;
    error = pause_before_retry(deadline);
    if (error) return 0;
  }
}

}  // namespace ulexite::detail
