#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/wait/stop_callbacks.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace ulexite::net {
namespace {

int bind_and_listen(detail::socket& made, const endpoint& at, const listen_options& options) noexcept {
  const bool ip = at.family() != address_family::local;
  int result = ip ? detail::set_option(made.fd(), SOL_SOCKET, SO_REUSEADDR, 1) : 0;
  if (result >= 0) result = detail::bind(made, at, options.reuse_port);
  if (result >= 0) result = detail::kernel::listen(made.fd(), options.backlog);
  return result;
}

// Whether the error concerns only the connection that accept was to return. See accept(2).
bool is_of_one_connection(int number) noexcept {
  switch (number) {
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH: return true;
    default: return false;
  }
}

bool is_scarcity(const std::error_code& error) noexcept {
  return error.category() == std::system_category() &&
         (error.value() == EMFILE || error.value() == ENFILE || error.value() == ENOBUFS || error.value() == ENOMEM);
}

// TCP_NODELAY and TCP_INQ need no call, because Linux copies the listener's options. Errors that persist are returned:
// a filter of system calls may refuse each.
ssize_t accept_one(int fd, sockaddr_storage& peer, socklen_t& peer_size) noexcept {
  for (int left = 64;;) {
    peer_size = sizeof peer;
    const int result = detail::kernel::accept(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size);
    if (result >= 0 || !is_of_one_connection(-result) || --left == 0) return result;
  }
}

// The endpoint of a listening stream socket. Sets the options that make_socket sets. Throws std::system_error.
endpoint endpoint_of_listening(int fd) {
  const auto ask = [&](int name) {
    int value = 0;
    socklen_t size = sizeof value;
    const int result = detail::kernel::getsockopt(fd, SOL_SOCKET, name, &value, &size);
    return result < 0 ? result : value;
  };
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  const int type = ask(SO_TYPE);
  int result = type < 0 ? type : detail::kernel::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  if (result == 0 && (type != SOCK_STREAM || ask(SO_ACCEPTCONN) != 1)) result = -EINVAL;
  if (result < 0)
    throw std::system_error(-result, std::system_category(),
                            "ulexite: adopting fd " + std::to_string(fd) + " as a listening stream socket");
  const endpoint local = detail::endpoint_of(at, size);
  if (local.family() != address_family::local) {
    detail::set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    detail::set_option(fd, IPPROTO_TCP, TCP_INQ, 1);
  }
  return local;
}

}  // namespace

tcp_listener::tcp_listener(const endpoint& at, listen_options options)
    : socket_(detail::make_bound(at, SOCK_STREAM, "listening at",
                                 [&](detail::socket& made) { return bind_and_listen(made, at, options); })),
      local_(detail::name_of(socket_, detail::kernel::getsockname)),
      closing_(std::stop_source()) {}

tcp_listener tcp_listener::listen(const address& at, listen_options options) {
  const std::vector<endpoint> endpoints = at.resolve();
  for (auto each = endpoints.begin();;) {
    try {
      return tcp_listener(*each, options);
    } catch (const std::system_error&) {
      if (++each == endpoints.end()) throw;
    }
  }
}

tcp_listener tcp_listener::adopt(int fd) {
  tcp_listener made;
  made.local_ = endpoint_of_listening(fd);
  made.closing_ = std::stop_source();
  detail::make_non_blocking(fd);
  made.socket_ = detail::socket_handle(fd);
  made.adopted_ = true;
  return made;
}

tcp_listener::tcp_listener(tcp_listener&& other) noexcept = default;

tcp_listener& tcp_listener::operator=(tcp_listener&& other) noexcept {
  if (this == &other) return *this;
  close();
  socket_ = std::move(other.socket_);
  local_ = other.local_;
  closing_ = std::move(other.closing_);
  adopted_ = other.adopted_;
  told_of_scarcity_ = other.told_of_scarcity_;
  return *this;
}

tcp_stream tcp_listener::accepted(int fd, const sockaddr_storage& peer, socklen_t peer_size) const {
  tcp_stream made(detail::socket_handle(fd, detail::is_plain_tcp(local_, SOCK_STREAM)));
  made.socket_.get()->set_peer(endpoint::from(reinterpret_cast<const sockaddr*>(&peer), peer_size));
  return made;
}

tcp_stream tcp_listener::accept(std::error_code& error) {
  endpoint peer;
  return accept(peer, error);
}

tcp_stream tcp_listener::accept(endpoint& from_whom, std::error_code& error) {
  return accept_until(detail::no_deadline, from_whom, error);
}

tcp_stream tcp_listener::accept_until(std::int64_t deadline, endpoint& from_whom, std::error_code& error) {
  for (;;) {
    detail::socket* const from = socket_.get(error);
    if (!from) return {};
    sockaddr_storage peer;
    socklen_t peer_size;
    const std::size_t fd = from->perform(detail::socket::read_side, deadline, error,
                                         [&](int from_fd) { return accept_one(from_fd, peer, peer_size); });
    if (!error) {
      tcp_stream made = accepted(static_cast<int>(fd), peer, peer_size);
      from_whom = made.socket_.get()->peer();
      return made;
    }
    if (is_scarcity(error)) {
      note_scarcity(error);
    } else if (!is_of_one_connection(error.value())) {
      return {};
    }
    error = detail::pause_until(detail::now_ns() + detail::scarcity_pause);
    if (error) return {};
  }
}

// A plain thread has no runtime whose counter could grow. If there is no memory for the line, the next time writes it.
void tcp_listener::note_scarcity(const std::error_code& error) noexcept try {
  if (detail::scheduler* const here = detail::this_scheduler()) here->counters().accepts_refused.add();
  if (told_of_scarcity_) return;
  detail::warn("accepting at %s: %s; clients wait, and it is tried again every 10 ms", local_.str().c_str(),
               error.message().c_str());
  told_of_scarcity_ = true;
} catch (const std::bad_alloc&) {
}

tcp_stream tcp_listener::accept_at_once(std::error_code& error) {
  sockaddr_storage peer;
  socklen_t peer_size;
  const int fd =
      detail::with_fd(socket_, error, [&](int from) { return static_cast<int>(accept_one(from, peer, peer_size)); });
  return error ? tcp_stream() : accepted(fd, peer, peer_size);
}

tcp_stream tcp_listener::accept() {
  endpoint peer;
  return accept(peer);
}

tcp_stream tcp_listener::accept(endpoint& peer) {
  std::error_code error;
  tcp_stream accepted = accept(peer, error);
  if (error) fail_to_accept(*this, error);
  return accepted;
}

void tcp_listener::fail_to_accept(const tcp_listener& at, const std::error_code& error) {
  detail::fail(error, "ulexite: accepting at " + at.local_.str());
}

// A waiter in accept or serve may destroy the listener as soon as its call returns. When the first close returns, no
// client can connect, though the waiter may still have the descriptor. But an adopted socket is left to the processes
// that share it: systemd regards the service as failed if it is shut down. The callbacks run first, because a server
// takes its backlog in one of them. A second close must not end the socket while they run.
void tcp_listener::close() noexcept {
  if (is_open() && detail::run_stop_callbacks(closing_)) socket_.get()->close(!adopted_);
}

int tcp_listener::release() {
  if (!socket_.get()) return -1;
  std::stop_source closing = closing_;  // a copy: the listener may be destroyed as soon as a waiter has left
  const int fd = socket_.get()->close_and_keep();
  if (fd >= 0) detail::run_stop_callbacks(closing);
  return fd;
}

bool tcp_listener::is_open() const noexcept { return native_handle() >= 0; }

int tcp_listener::native_handle() const noexcept { return socket_.get() ? socket_.get()->fd() : -1; }

}  // namespace ulexite::net
