#include <ulexite/base/error.hpp>
#include <ulexite/net/resolve.hpp>
#include <ulexite/net/socket.hpp>
#include <ulexite/net/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string>

namespace ulexite {

using detail::or_errno;
using detail::socket;

detail::socket_handle::socket_handle(int fd) : socket_(new(std::nothrow) socket(fd)) {
  if (socket_) return;
  ::close(fd);
  throw std::bad_alloc();
}

void detail::socket_handle::reset() noexcept {
  if (socket* const last = std::exchange(socket_, nullptr)) last->abandon();
}

namespace net {
namespace {

std::error_code closed_error() noexcept { return std::make_error_code(std::errc::bad_file_descriptor); }

// The socket, or null and the error.
socket* open_socket(const detail::socket_handle& handle, std::error_code& error) noexcept {
  error = handle.get() ? std::error_code() : closed_error();
  return handle.get();
}

std::string number(const tcp_stream& stream) { return "fd " + std::to_string(stream.native_handle()); }

void set_option(const tcp_stream& stream, int level, int name, bool on, const char* what) {
  const int value = on;
  if (or_errno(::setsockopt(stream.native_handle(), level, name, &value, sizeof value)) < 0)
    detail::fail({detail::last_errno(), std::system_category()},
                 std::string("ulexite: setting ") + what + " of " + number(stream));
}

msghdr message(std::span<const iovec> buffers) noexcept {
  msghdr made{};
  made.msg_iov = const_cast<iovec*>(buffers.data());
  made.msg_iovlen = std::min<std::size_t>(buffers.size(), IOV_MAX);
  return made;
}

std::size_t total(std::span<const iovec> buffers) noexcept {
  std::size_t sum = 0;
  for (const iovec& each : buffers.first(std::min<std::size_t>(buffers.size(), IOV_MAX))) sum += each.iov_len;
  return sum;
}

// Sends what is left of `buffers` behind their first `done` bytes, as far as it goes in one call.
std::size_t write_behind(tcp_stream& stream, std::span<const iovec>& buffers, std::size_t& done,
                         std::error_code& error) {
  while (!buffers.empty() && done >= buffers.front().iov_len) {
    done -= buffers.front().iov_len;
    buffers = buffers.subspan(1);
  }
  std::array<iovec, 64> part;
  const std::size_t count = std::min(buffers.size(), part.size());
  if (count == 0) return 0;
  std::copy_n(buffers.begin(), count, part.begin());
  part[0].iov_base = static_cast<char*>(part[0].iov_base) + done;
  part[0].iov_len -= done;
  return stream.write_some(std::span<const iovec>(part.data(), count), error);
}

}  // namespace

// ---- making one
// -------------------------------------------------------------------------------------------------------

tcp_stream tcp_stream::adopt(int fd) {
  const int flags = or_errno(::fcntl(fd, F_GETFL));
  const int result = flags < 0 ? flags : or_errno(::fcntl(fd, F_SETFL, flags | O_NONBLOCK));
  if (result < 0)
    throw std::system_error(-result, std::system_category(), "ulexite: adopting fd " + std::to_string(fd));
  return tcp_stream(fd);
}

tcp_stream tcp_stream::connect_until(const endpoint& to, std::int64_t deadline, std::error_code& error) {
  const int fd = detail::make_socket(to, error);
  if (error) return {};
  tcp_stream made(fd);
  detail::connect(*made.socket_.get(), to, deadline, error);
  if (error) return {};
  return made;
}

tcp_stream tcp_stream::connect_until(const endpoint& to, std::int64_t deadline) {
  std::error_code error;
  tcp_stream made = connect_until(to, deadline, error);
  if (error) detail::fail(error, "ulexite: connecting to " + to.str());
  return made;
}

tcp_stream tcp_stream::connect_until(std::string_view host, std::uint16_t port, std::int64_t deadline) {
  std::error_code error = std::make_error_code(std::errc::address_not_available);
  for (const endpoint& each : resolve(host, std::to_string(port))) {
    tcp_stream made = connect_until(each, deadline, error);
    if (!error) return made;
    if (error.category() == error_category()) break;
  }
  const bool numeric = host.find(':') != host.npos;
  detail::fail(error, std::string("ulexite: connecting to ") + (numeric ? "[" : "") + std::string(host) +
                          (numeric ? "]:" : ":") + std::to_string(port));
}

tcp_stream tcp_stream::connect_until(std::string_view host, std::uint16_t port, std::int64_t deadline,
                                     std::error_code& error) try {
  error.clear();
  return connect_until(host, port, deadline);
} catch (const std::system_error& failure) {
  error = failure.code();
  return {};
}

// ---- reading
// ----------------------------------------------------------------------------------------------------------

std::size_t tcp_stream::read_some(void* data, std::size_t size, std::error_code& error) {
  socket* const from = open_socket(socket_, error);
  if (!from || size == 0) return 0;
  return from->receive(size, error, [&](int fd) { return or_errno(::recv(fd, data, size, 0)); });
}

std::size_t tcp_stream::read_some(std::span<const iovec> buffers, std::error_code& error) {
  socket* const from = open_socket(socket_, error);
  const std::size_t size = total(buffers);
  if (!from || size == 0) return 0;
  msghdr into = message(buffers);
  return from->receive(size, error, [&](int fd) { return or_errno(::recvmsg(fd, &into, 0)); });
}

std::size_t tcp_stream::read_some(void* data, std::size_t size) {
  std::error_code error;
  const std::size_t got = read_some(data, size, error);
  if (error) detail::fail(error, "ulexite: reading " + number(*this));
  return got;
}

std::size_t tcp_stream::read(void* data, std::size_t size, std::error_code& error) {
  error.clear();
  std::size_t got = 0;
  while (got < size) {
    const std::size_t more = read_some(static_cast<char*>(data) + got, size - got, error);
    if (more == 0) break;
    got += more;
  }
  return got;
}

std::size_t tcp_stream::read(void* data, std::size_t size) {
  std::error_code error;
  const std::size_t got = read(data, size, error);
  if (error) detail::fail(error, "ulexite: reading " + number(*this));
  return got;
}

// ---- writing
// ----------------------------------------------------------------------------------------------------------

std::size_t tcp_stream::write_some(const void* data, std::size_t size, std::error_code& error) {
  socket* const to = open_socket(socket_, error);
  if (!to || size == 0) return 0;
  return to->send(error, [&](int fd) { return or_errno(::send(fd, data, size, MSG_NOSIGNAL)); });
}

std::size_t tcp_stream::write_some(std::span<const iovec> buffers, std::error_code& error) {
  socket* const to = open_socket(socket_, error);
  if (!to || total(buffers) == 0) return 0;
  const msghdr from = message(buffers);
  return to->send(error, [&](int fd) { return or_errno(::sendmsg(fd, &from, MSG_NOSIGNAL)); });
}

std::size_t tcp_stream::write_some(const void* data, std::size_t size) {
  std::error_code error;
  const std::size_t sent = write_some(data, size, error);
  if (error) detail::fail(error, "ulexite: writing " + number(*this));
  return sent;
}

std::size_t tcp_stream::write(const void* data, std::size_t size, std::error_code& error) {
  error.clear();
  std::size_t sent = 0;
  while (sent < size && !error) sent += write_some(static_cast<const char*>(data) + sent, size - sent, error);
  return sent;
}

void tcp_stream::write(const void* data, std::size_t size) {
  std::error_code error;
  write(data, size, error);
  if (error) detail::fail(error, "ulexite: writing " + number(*this));
}

std::size_t tcp_stream::writev(std::span<const iovec> buffers, std::error_code& error) {
  error.clear();
  std::size_t sent = 0;
  for (std::size_t done = 0; !error;) {
    const std::size_t more = write_behind(*this, buffers, done, error);
    if (buffers.empty()) break;
    done += more;
    sent += more;
  }
  return sent;
}

void tcp_stream::writev(std::span<const iovec> buffers) {
  std::error_code error;
  writev(buffers, error);
  if (error) detail::fail(error, "ulexite: writing " + number(*this));
}

// ---- the rest
// ---------------------------------------------------------------------------------------------------------

void tcp_stream::shutdown_write(std::error_code& error) noexcept {
  error.clear();
  if (const int result = or_errno(::shutdown(native_handle(), SHUT_WR)); result < 0)
    error.assign(-result, std::system_category());
}

void tcp_stream::shutdown_write() {
  std::error_code error;
  shutdown_write(error);
  if (error) detail::fail(error, "ulexite: ending the writing of " + number(*this));
}

void tcp_stream::close() noexcept {
  if (socket_.get()) socket_.get()->close();
}

bool tcp_stream::is_open() const noexcept { return native_handle() >= 0; }

int tcp_stream::native_handle() const noexcept { return socket_.get() ? socket_.get()->fd() : -1; }

int tcp_stream::release() { return socket_.get() ? socket_.get()->release() : -1; }

void tcp_stream::set_expiry(std::int64_t deadline) noexcept {
  if (socket_.get()) socket_.get()->expires_at(deadline);
}

void tcp_stream::set_nodelay(bool on) {
  if (local_endpoint().family() != address_family::local)
    set_option(*this, IPPROTO_TCP, TCP_NODELAY, on, "TCP_NODELAY");
}

void tcp_stream::set_keepalive(bool on) { set_option(*this, SOL_SOCKET, SO_KEEPALIVE, on, "SO_KEEPALIVE"); }

endpoint tcp_stream::local_endpoint() const { return detail::name_of(native_handle(), ::getsockname); }

endpoint tcp_stream::remote_endpoint() const { return detail::name_of(native_handle(), ::getpeername); }

}  // namespace net
}  // namespace ulexite
