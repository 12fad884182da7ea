#pragma once

// What streams and listeners do with a socket before it is one of theirs. The library's own: nothing for users.

#include <ulexite/net/fd_wait.hpp>
#include <ulexite/net/socket.hpp>
#include <ulexite/net/socket_base.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace ulexite::detail {

// Throws `error` as what it is: operation_cancelled, or std::system_error saying `what` was being done.
[[noreturn]] void fail(std::error_code error, const std::string& what);

// How long whoever lacks descriptors, memory or fibers waits before the next try, in nanoseconds.
inline constexpr std::int64_t scarcity_pause = 10'000'000;

// Sleeps. A cancellation point, told as errc::cancelled.
std::error_code pause_until(std::int64_t deadline);

// How long the next try of what nobody tells the readiness of is put off.
std::error_code pause_before_retry(std::int64_t deadline);

// Does make_socket make one of TCP?
inline bool is_plain_tcp(const net::endpoint& at, int type) noexcept {
  return type == SOCK_STREAM && at.family() != net::address_family::local;
}

// A non-blocking socket of `type` for an endpoint of that family, with TCP_NODELAY and TCP_INQ on if it is of TCP. -1
// on an error.
int make_socket(const net::endpoint& at, int type, std::error_code& error) noexcept;
// The same, bound to `local` if there is one.
int make_socket(const net::endpoint& to, int type, std::error_code& error,
                const std::optional<net::endpoint>& local) noexcept;

// Makes a descriptor of somebody else's ready to be a socket's. Throws std::system_error.
void make_non_blocking(int fd);

// Binds, with SO_REUSEPORT if asked for; a path is removed when the socket is closed. -errno on an error.
int bind(socket& made, const net::endpoint& at, bool reuse_port) noexcept;

// A socket of make_socket that `set_up(socket)` has bound; that returns -errno on an error. Throws std::system_error
// that says what was being done ("listening at") and where.
template <class SetUp>
socket_handle make_bound(const net::endpoint& at, int type, const char* doing, SetUp&& set_up) {
  std::error_code error;
  socket_handle made;
  if (const int fd = make_socket(at, type, error); !error) {
    made = socket_handle(fd, is_plain_tcp(at, type));
    if (const int result = set_up(*made.get()); result < 0) error.assign(-result, std::system_category());
  }
  if (error) throw std::system_error(error, std::string("ulexite: ") + doing + " " + at.str());
  return made;
}

// Connects a stream socket of make_socket. Waits, until `deadline`.
void connect(socket& from, const net::endpoint& to, std::int64_t deadline, std::error_code& error);

// Ends a connection over TCP that was made to its own end, and sets connection_refused. That happens when nobody
// listens at a port of this machine, and the system gives that very port to the socket that connects.
void refuse_itself(const socket_handle& made, const net::endpoint& to, std::error_code& error);

// Closes it by a reset, if it is of TCP.
void reset(const socket_handle& whose) noexcept;

// Its own or its peer's endpoint, by kernel::getsockname or kernel::getpeername. Throws std::system_error.
net::endpoint name_of(const socket_handle& whose, int (*ask)(int, sockaddr*, socklen_t*) noexcept);

// Asks the system for the peer of a socket that was made elsewhere, and keeps it for messages.
void learn_peer(const socket_handle& whose) noexcept;

// For messages: the peer, if it is known by a name; "a peer of" its own name; or else the descriptor's number.
std::string peer_text(const socket_handle& whose);

// setsockopt. -errno on an error.
template <class Value>
int set_option(int fd, int level, int name, const Value& value) noexcept {
  return kernel::setsockopt(fd, level, name, &value, sizeof value);
}

// socket::at_once for a socket that may be none. Returns what `call` did; the error is that of -errno.
template <class Call>
int at_once(const socket_handle& handle, std::error_code& error, Call&& call) noexcept {
  socket* const used = handle.get(error);
  const int result = used ? used->at_once(call) : 0;
  if (result < 0) error.assign(-result, std::system_category());
  return result;
}

// socket::perform for a `call` whose EAGAIN may come without an edge that ends it, as Unix sockets have it: instead of
// waiting it is made again every millisecond.
template <class Call>
std::size_t perform_by_polling(socket& used, direction towards, std::int64_t deadline, std::error_code& error,
                               Call&& call) {
  for (;;) {
    bool blocked = false;
    const std::size_t done = used.perform(towards, deadline, error, [&](int fd) -> ssize_t {
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
