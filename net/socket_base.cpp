#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/socket_base.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <string>

namespace ulexite {

detail::socket_handle::socket_handle(int fd, bool plain_tcp) : socket_(new(std::nothrow) socket(fd, plain_tcp)) {
  if (socket_) return;
  kernel::close(fd);
  throw std::bad_alloc();
}

void detail::socket_handle::reset() noexcept {
  if (socket* const last = std::exchange(socket_, nullptr)) last->abandon();
}

namespace net {
namespace {

int as_int(std::size_t bytes) noexcept { return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX)); }

std::string option_text(int level, int name) { return std::to_string(name) + " of level " + std::to_string(level); }

}  // namespace

void socket_base::close() noexcept {
  if (socket_.get()) socket_.get()->close();
}

bool socket_base::is_open() const noexcept { return native_handle() >= 0; }

int socket_base::native_handle() const noexcept { return socket_.get() ? socket_.get()->fd() : -1; }

int socket_base::release() { return socket_.get() ? socket_.get()->release() : -1; }

void socket_base::set_read_expiry(std::int64_t deadline) noexcept {
  if (socket_.get()) socket_.get()->expires_at(detail::socket::read_side, deadline);
}

void socket_base::set_write_expiry(std::int64_t deadline) noexcept {
  if (socket_.get()) socket_.get()->expires_at(detail::socket::write_side, deadline);
}

void socket_base::set_expiry(std::int64_t deadline) noexcept {
  set_read_expiry(deadline);
  set_write_expiry(deadline);
}

void socket_base::set_receive_buffer(std::size_t bytes) {
  set_named_option(SOL_SOCKET, SO_RCVBUF, as_int(bytes), "SO_RCVBUF");
}

void socket_base::set_send_buffer(std::size_t bytes) {
  set_named_option(SOL_SOCKET, SO_SNDBUF, as_int(bytes), "SO_SNDBUF");
}

endpoint socket_base::local_endpoint() const { return detail::name_of(socket_, detail::kernel::getsockname); }

endpoint socket_base::remote_endpoint() const { return detail::name_of(socket_, detail::kernel::getpeername); }

void socket_base::fail(const std::error_code& error, const char* doing) const {
  detail::fail(error, std::string("ulexite: ") + doing + " " + detail::peer_text(socket_));
}

void socket_base::set_named_option(int level, int name, int value, const char* what) {
  std::error_code error;
  detail::with_fd(socket_, error, [&](int fd) { return detail::set_option(fd, level, name, value); });
  if (error) fail(error, (std::string("setting ") + what + " for").c_str());
}

void socket_base::set_option_bytes(int level, int name, const void* value, std::size_t size) {
  std::error_code error;
  detail::with_fd(socket_, error, [&](int fd) {
    return detail::kernel::setsockopt(fd, level, name, value, static_cast<socklen_t>(size));
  });
  if (error) fail(error, ("setting option " + option_text(level, name) + " for").c_str());
}

void socket_base::option_bytes(int level, int name, void* value, std::size_t size) const {
  std::error_code error;
  auto length = static_cast<socklen_t>(size);
  detail::with_fd(socket_, error, [&](int fd) {
    const int result = detail::kernel::getsockopt(fd, level, name, value, &length);
    return result == 0 && length != size ? -EINVAL : result;  // the value is of another type
  });
  if (error) fail(error, ("asking for option " + option_text(level, name) + " of").c_str());
}

}  // namespace net
}  // namespace ulexite
