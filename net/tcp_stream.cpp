#include <ulexite/base/error.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <string>

namespace ulexite {

using detail::socket;

namespace net {
namespace {

msghdr message(std::span<const iovec> buffers) noexcept {
  msghdr made{};
  made.msg_iov = const_cast<iovec*>(buffers.data());
  made.msg_iovlen = std::min<std::size_t>(buffers.size(), IOV_MAX);
  return made;
}

// The result of an operation of no bytes.
std::size_t nothing(const socket& of, std::error_code& error) noexcept {
  if (!of.is_open()) error = std::make_error_code(std::errc::bad_file_descriptor);
  return 0;
}

std::size_t total(std::span<const iovec> buffers) noexcept {
  std::size_t sum = 0;
  for (const iovec& each : buffers.first(std::min<std::size_t>(buffers.size(), IOV_MAX))) sum += each.iov_len;
  return sum;
}

// Reads from plain TCP, which reports with the data the number of bytes left. Other sockets would fill `control` with
// passed descriptors.
ssize_t receive_plain_tcp(int fd, msghdr into, bool& nothing_left) noexcept {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  into.msg_control = control;
  into.msg_controllen = sizeof control;
  const ssize_t got = detail::kernel::recvmsg(fd, &into, 0);
  const cmsghdr* const told = got > 0 ? CMSG_FIRSTHDR(&into) : nullptr;
  int left = 1;
  if (told && told->cmsg_level == IPPROTO_TCP && told->cmsg_type == TCP_CM_INQ)
    std::memcpy(&left, CMSG_DATA(told), sizeof left);
  nothing_left = left == 0;
  return got;
}

// Converts, and keeps a value that is out of range out of range.
int as_int(std::chrono::seconds time) noexcept {
  return static_cast<int>(std::clamp<std::int64_t>(time.count(), 0, INT_MAX));
}

// Whether it is TCP without a kernel protocol on top, such as TLS. If so, makes its reads report the bytes left.
bool made_to_tell(int fd) noexcept {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (detail::kernel::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP)
    return false;
  char upper[16] = "";
  size = sizeof upper;
  return detail::kernel::getsockopt(fd, IPPROTO_TCP, TCP_ULP, upper, &size) == 0 && size == 0 &&
         detail::set_option(fd, IPPROTO_TCP, TCP_INQ, 1) == 0;
}

// Sends the bytes of `buffers` after the first `done`, as many as one call takes.
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

// ---- making one ----

tcp_stream tcp_stream::adopt(int fd) {
  detail::make_non_blocking(fd);
  tcp_stream made(detail::socket_handle(fd, made_to_tell(fd)));
  detail::learn_peer(made.socket_);
  return made;
}

// ---- reading ----

std::size_t tcp_stream::read_some(void* data, std::size_t size, std::error_code& error) {
  const iovec buffer{data, size};
  return read_some(std::span(&buffer, 1), error);
}

std::size_t tcp_stream::read_some(std::span<const iovec> buffers, std::error_code& error) {
  socket* const from = socket_.get(error);
  if (!from) return 0;
  if (total(buffers) == 0) return nothing(*from, error);
  return receive_some(*from, buffers, from->expiry(socket::read_side), error);
}

std::size_t tcp_stream::receive_some(socket& from, std::span<const iovec> buffers, std::int64_t deadline,
                                     std::error_code& error) {
  msghdr into = message(buffers);
  return from.receive(deadline, error, [&](int fd, bool& nothing_left) {
    return from.is_plain_tcp() ? receive_plain_tcp(fd, into, nothing_left) : detail::kernel::recvmsg(fd, &into, 0);
  });
}

std::size_t tcp_stream::peek(void* data, std::size_t size, std::error_code& error) {
  socket* const from = socket_.get(error);
  if (!from) return 0;
  if (size == 0) return nothing(*from, error);
  return peek_some(*from, data, size, from->expiry(socket::read_side), error);
}

std::size_t tcp_stream::peek_some(socket& from, void* data, std::size_t size, std::int64_t deadline,
                                  std::error_code& error) {
  return from.receive(deadline, error, [&](int fd, bool&) { return detail::kernel::recv(fd, data, size, MSG_PEEK); });
}

std::size_t tcp_stream::peek(void* data, std::size_t size) {
  std::error_code error;
  const std::size_t got = peek(data, size, error);
  throw_if(error, "reading from");
  return got;
}

std::size_t tcp_stream::read_some(void* data, std::size_t size) {
  std::error_code error;
  const std::size_t got = read_some(data, size, error);
  throw_if(error, "reading from");
  return got;
}

std::size_t tcp_stream::read_some(std::span<const iovec> buffers) {
  std::error_code error;
  const std::size_t got = read_some(buffers, error);
  throw_if(error, "reading from");
  return got;
}

std::size_t tcp_stream::read(void* data, std::size_t size, std::error_code& error) {
  error.clear();
  std::size_t got = 0, more;
  do {
    more = read_some(static_cast<char*>(data) + got, size - got, error);
    got += more;
  } while (more > 0 && got < size);
  return got;
}

std::size_t tcp_stream::read(void* data, std::size_t size) {
  std::error_code error;
  const std::size_t got = read(data, size, error);
  throw_if(error, "reading from");
  return got;
}

// ---- writing ----

std::size_t tcp_stream::write_some(const void* data, std::size_t size, std::error_code& error) {
  socket* const to = socket_.get(error);
  if (!to) return 0;
  if (size == 0) return nothing(*to, error);
  return to->send(error, [&](int fd) { return detail::kernel::send(fd, data, size, MSG_NOSIGNAL); });
}

std::size_t tcp_stream::write_some(std::span<const iovec> buffers, std::error_code& error) {
  socket* const to = socket_.get(error);
  if (!to) return 0;
  if (total(buffers) == 0) return nothing(*to, error);
  return send_some(*to, buffers, to->expiry(socket::write_side), error);
}

std::size_t tcp_stream::send_some(socket& to, std::span<const iovec> buffers, std::int64_t deadline,
                                  std::error_code& error) {
  const msghdr from = message(buffers);
  return to.send(deadline, error, [&](int fd) { return detail::kernel::sendmsg(fd, &from, MSG_NOSIGNAL); });
}

std::size_t tcp_stream::write_some(const void* data, std::size_t size) {
  std::error_code error;
  const std::size_t sent = write_some(data, size, error);
  throw_if(error, "writing to");
  return sent;
}

std::size_t tcp_stream::write_some(std::span<const iovec> buffers) {
  std::error_code error;
  const std::size_t sent = write_some(buffers, error);
  throw_if(error, "writing to");
  return sent;
}

std::size_t tcp_stream::write(const void* data, std::size_t size, std::error_code& error) {
  error.clear();
  std::size_t sent = 0;
  do {
    sent += write_some(static_cast<const char*>(data) + sent, size - sent, error);
  } while (sent < size && !error);
  return sent;
}

void tcp_stream::write(const void* data, std::size_t size) {
  std::error_code error;
  write(data, size, error);
  throw_if(error, "writing to");
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
  if (sent == 0 && !error) write_some(nullptr, 0, error);
  return sent;
}

void tcp_stream::writev(std::span<const iovec> buffers) {
  std::error_code error;
  writev(buffers, error);
  throw_if(error, "writing to");
}

// ---- the rest ----

void tcp_stream::shutdown_write(std::error_code& error) noexcept {
  detail::with_fd(socket_, error, [](int fd) { return detail::kernel::shutdown(fd, SHUT_WR); });
}

void tcp_stream::shutdown_write() {
  std::error_code error;
  shutdown_write(error);
  throw_if(error, "ending the writing to");
}

void tcp_stream::shutdown_read() noexcept {
  std::error_code ignored;
  detail::with_fd(socket_, ignored, [](int fd) { return detail::kernel::shutdown(fd, SHUT_RD); });
}

void tcp_stream::abort() noexcept { detail::reset(socket_); }

void tcp_stream::set_tcp_option(int name, int value, const char* what) {
  if (local_endpoint().family() != address_family::local) set_named_option(IPPROTO_TCP, name, value, what);
}

void tcp_stream::set_nodelay(bool on) { set_tcp_option(TCP_NODELAY, on, "TCP_NODELAY"); }

void tcp_stream::set_keepalive(bool on) { set_named_option(SOL_SOCKET, SO_KEEPALIVE, on, "SO_KEEPALIVE"); }

void tcp_stream::set_keepalive(std::chrono::seconds idle, std::chrono::seconds interval, int count) {
  set_tcp_option(TCP_KEEPIDLE, as_int(idle), "TCP_KEEPIDLE");
  set_tcp_option(TCP_KEEPINTVL, as_int(interval), "TCP_KEEPINTVL");
  set_tcp_option(TCP_KEEPCNT, count, "TCP_KEEPCNT");
  set_keepalive(true);
}

}  // namespace net
}  // namespace ulexite
