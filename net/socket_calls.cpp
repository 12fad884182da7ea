#include <ulexite/base/error.hpp>
#include <ulexite/net/socket.hpp>
#include <ulexite/net/socket_calls.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ulexite::detail {
namespace {

constexpr std::int64_t full_backlog_pause = 1'000'000;  // ns

void assign(std::error_code& error, int result) noexcept {
  if (result < 0) error.assign(-result, std::system_category());
}

// The kernel neither queues a connection to a Unix listener whose backlog is full nor says when there is room: EAGAIN.
void connect_local(socket& from, const net::endpoint& to, std::int64_t deadline, std::error_code& error) {
  for (;;) {
    bool full = false;
    from.perform(socket::write_side, deadline, error, [&](int fd) -> ssize_t {
      const int result = or_errno(::connect(fd, to.data(), to.size()));
      full = result == -EAGAIN;
      return full ? 0 : result;
    });
    if (error || !full) return;
    error = pause_until(std::min(deadline, now_ns() + full_backlog_pause));
    if (error) return;
  }
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

int make_socket(const net::endpoint& at, std::error_code& error) noexcept {
  error.clear();
  const bool local = at.family() == net::address_family::local;
  const int fd = or_errno(::socket(at.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  assign(error, fd);
  if (error || local) return fd;
  const int on = 1;
  assign(error, or_errno(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on)));
  if (!error) return fd;
  ::close(fd);
  return -1;
}

// An edge may be a stale one, so it is connect itself that is asked again: it says EALREADY until it is decided, and
// then 0, or EISCONN, or why not.
void connect(socket& from, const net::endpoint& to, std::int64_t deadline, std::error_code& error) {
  if (to.family() == net::address_family::local) return connect_local(from, to, deadline, error);
  from.perform(socket::write_side, deadline, error, [&](int fd) -> ssize_t {
    const int result = or_errno(::connect(fd, to.data(), to.size()));
    return result == -EISCONN ? 0 : result;
  });
}

net::endpoint name_of(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (const int result = or_errno(ask(fd, reinterpret_cast<sockaddr*>(&address), &size)); result < 0)
    throw std::system_error(-result, std::system_category(),
                            "ulexite: asking for the endpoint of fd " + std::to_string(fd));
  return net::endpoint::from(reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace ulexite::detail
