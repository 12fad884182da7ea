#include <ulexite/base/error.hpp>
#include <ulexite/net/socket.hpp>
#include <ulexite/net/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

namespace ulexite::net {
namespace {

using detail::or_errno;

constexpr std::int64_t scarcity_pause = 10'000'000;  // ns

int bind_and_listen(int fd, const endpoint& at, const listen_options& options) noexcept {
  const int on = 1;
  const bool ip = at.family() != address_family::local;
  int result = 0;
  if (ip) result = or_errno(::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  if (result >= 0 && options.reuse_port) result = or_errno(::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
  if (result >= 0) result = or_errno(::bind(fd, at.data(), at.size()));
  if (result >= 0) result = or_errno(::listen(fd, options.backlog));
  return result;
}

// Does the error concern only the connection that was to be accepted? See accept(2).
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

// TCP_NODELAY needs no call: Linux hands the listener's down.
ssize_t accept_one(int fd) noexcept {
  for (;;) {
    const int result = or_errno(::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (result >= 0 || !is_of_one_connection(-result)) return result;
  }
}

}  // namespace

tcp_listener::tcp_listener(const endpoint& at, listen_options options) {
  const std::string what = "ulexite: listening at " + at.str();
  std::error_code error;
  const int fd = detail::make_socket(at, error);
  if (error) throw std::system_error(error, what);
  detail::socket_handle made(fd);
  if (const int result = bind_and_listen(fd, at, options); result < 0)
    throw std::system_error(-result, std::system_category(), what);
  local_ = detail::name_of(fd, ::getsockname);
  socket_ = std::move(made);
}

tcp_listener::tcp_listener(tcp_listener&& other) noexcept = default;

tcp_listener& tcp_listener::operator=(tcp_listener&& other) noexcept {
  if (this == &other) return *this;
  close();
  socket_ = std::move(other.socket_);
  local_ = other.local_;
  return *this;
}

tcp_stream tcp_listener::accept(std::error_code& error) {
  for (;;) {
    error = std::make_error_code(std::errc::bad_file_descriptor);
    if (!socket_.get()) return {};
    const std::size_t fd = socket_.get()->perform(detail::socket::read_side, detail::no_deadline, error, accept_one);
    if (!error) return tcp_stream(static_cast<int>(fd));
    if (!is_scarcity(error)) return {};
    error = detail::pause_until(detail::now_ns() + scarcity_pause);
    if (error) return {};
  }
}

tcp_stream tcp_listener::accept() {
  std::error_code error;
  tcp_stream accepted = accept(error);
  if (error) detail::fail(error, "ulexite: accepting at " + local_.str());
  return accepted;
}

// While the path exists nobody else can bind there, so it is still this listener's when it is removed.
void tcp_listener::close() noexcept {
  if (!socket_.get() || !socket_.get()->close()) return;
  if (!local_.path().empty()) ::unlink(std::string(local_.path()).c_str());
}

bool tcp_listener::is_open() const noexcept { return native_handle() >= 0; }

int tcp_listener::native_handle() const noexcept { return socket_.get() ? socket_.get()->fd() : -1; }

}  // namespace ulexite::net
