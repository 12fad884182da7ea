#include <ulexite/base/error.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace ulexite::detail {
namespace {

constexpr std::int64_t retry_pause = 1'000'000;  // ns

// Whether its text names a socket. The text of a Unix socket without a name is "unix:".
bool is_named(const net::endpoint& which) { return which.str().size() > sizeof "unix:" - 1; }

void assign(std::error_code& error, int result) noexcept {
  if (result < 0) error.assign(-result, std::system_category());
}

}  // namespace

void fail(std::error_code error, const std::string& what) {
  if (error.category() == error_category()) throw_cancelled(error);
  throw std::system_error(error, what);
}

std::error_code pause_until(std::int64_t deadline) try {
  sleep_until(deadline);
  return {};
} catch (const operation_cancelled& cancelled) {
  return cancelled.code();
}

std::error_code pause_before_retry(std::int64_t deadline) {
  return pause_until(std::min(deadline, now_ns() + retry_pause));
}

int make_socket(const net::endpoint& at, int type, std::error_code& error) noexcept {
  error.clear();
  const int fd = kernel::socket(at.data()->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC);
  assign(error, fd);
  if (error || !is_plain_tcp(at, type)) return fd;
  assign(error, set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1));
  set_option(fd, IPPROTO_TCP, TCP_INQ, 1);  // without it, a reader makes one useless read
  if (!error) return fd;
  kernel::close(fd);
  return -1;
}

// Without a port the system chooses one at connect, and this port need only be free for the peer.
socket_handle make_to_connect(const net::endpoint& to, const std::optional<net::endpoint>& local,
                              std::error_code& error) {
  return make_prepared(to, SOCK_STREAM, error, [&](socket& made) {
    made.set_peer(to);
    if (!local) return 0;
    if (local->family() != to.family()) return -EAFNOSUPPORT;
    if (local->family() != net::address_family::local && local->port() == 0)
      set_option(made.fd(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);  // without it, the call takes a port
    return bind(made, *local, false);
  });
}

void make_non_blocking(int fd) {
  if (network_of(fd)) return;  // these are always non-blocking
  const int flags = result_or_errno(::fcntl(fd, F_GETFL));
  const int result = flags < 0 ? flags : result_or_errno(::fcntl(fd, F_SETFL, flags | O_NONBLOCK));
  if (result < 0)
    throw std::system_error(-result, std::system_category(), "ulexite: adopting fd " + std::to_string(fd));
}

int bind(socket& made, const net::endpoint& at, bool reuse_port) noexcept {
  const int fd = made.fd();
  int result = reuse_port ? set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1) : 0;
  if (result >= 0) result = kernel::bind(fd, at.data(), at.size());
  if (result >= 0 && !at.path().empty()) made.owns_path(at.path());
  return result;
}

// An edge may be stale, so connect is called again. It fails with EALREADY until the result is known, and then returns
// 0, EISCONN or the error. A Unix listener with a full backlog neither queues the connection nor reports when there is
// room.
void connect(socket& from, const net::endpoint& to, std::int64_t deadline, std::error_code& error) {
  const auto connect_once = [&](int fd) -> ssize_t {
    const int result = kernel::connect(fd, to.data(), to.size());
    return result == -EISCONN ? 0 : result;
  };
  if (to.family() == net::address_family::local)
    perform_by_polling(from, socket::write_side, deadline, error, connect_once);
  else
    from.perform(socket::write_side, deadline, error, connect_once);
}

// The end is a reset, which frees the port for the server that should listen there.
void refuse_itself(const socket_handle& made, const net::endpoint& to, std::error_code& error) {
  if (to.port() == 0) return;  // a Unix socket
  try {
    const net::endpoint local = name_of(made, kernel::getsockname);
    if (local.port() != to.port() || local != name_of(made, kernel::getpeername)) return;
  } catch (const std::system_error&) {
    return;  // it has ended
  }
  reset(made);
  error = std::make_error_code(std::errc::connection_refused);
}

void learn_peer(const socket_handle& whose) noexcept try {
  whose.get()->set_peer(name_of(whose, kernel::getpeername));
} catch (const std::exception&) {  // it has no peer, or one of a family without endpoints
}

std::string peer_text(const socket_handle& whose) {
  if (!whose.get()) return "a socket that is none";
  if (const net::endpoint peer = whose.get()->peer(); is_named(peer)) return peer.str();
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const auto ask = [&](int fd) { return kernel::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size); };
  if (whose.get()->with_fd(ask) < 0) return "a closed socket";
  try {
    const net::endpoint local = endpoint_of(address, size);
    if (is_named(local)) return "a peer of " + local.str();
  } catch (const std::system_error&) {  // of another family
  }
  return "fd " + std::to_string(whose.get()->fd());
}

// A linger of no time makes the close a reset.
void reset(const socket_handle& whose) noexcept {
  std::error_code ignored;
  with_fd(whose, ignored, [](int fd) { return set_option(fd, SOL_SOCKET, SO_LINGER, linger{1, 0}); });
  if (whose.get()) whose.get()->close();
}

net::endpoint name_of(const socket_handle& whose, int (*ask)(int, sockaddr*, socklen_t*) noexcept) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::error_code error;
  with_fd(whose, error, [&](int fd) { return ask(fd, reinterpret_cast<sockaddr*>(&address), &size); });
  if (error)
    throw std::system_error(error, "ulexite: asking for an endpoint of the connection with " + peer_text(whose));
  return endpoint_of(address, size);
}

net::endpoint endpoint_of(const sockaddr_storage& address, socklen_t size) try {
  return net::endpoint::from(reinterpret_cast<const sockaddr*>(&address), size);
} catch (const std::invalid_argument&) {
  throw std::system_error(EAFNOSUPPORT, std::system_category(),
                          "ulexite: a socket of address family " + std::to_string(address.ss_family));
}

}  // namespace ulexite::detail
