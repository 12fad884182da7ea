#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/udp.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <string>
#include <utility>

namespace ulexite::net {
namespace {

using detail::result_or_errno;
using detail::socket;

int broadcast_and_bind(socket& made, const endpoint& at, const udp_options& options) noexcept {
  const int result = options.broadcast ? detail::set_option(made.fd(), SOL_SOCKET, SO_BROADCAST, 1) : 0;
  return result < 0 ? result : detail::bind(made, at, options.reuse_port);
}

std::int64_t expiry_of(const detail::socket_handle& which, detail::direction side) noexcept {
  return which.get() ? which.get()->expiry(side) : detail::no_deadline;
}

}  // namespace

udp_socket::udp_socket(const endpoint& at, udp_options options) {
  socket_ = detail::make_bound(at, SOCK_DGRAM, "binding to",
                               [&](socket& made) { return broadcast_and_bind(made, at, options); });
  socket_.get()->share();
}

udp_socket udp_socket::adopt(int fd) {
  detail::make_non_blocking(fd);
  udp_socket made{detail::socket_handle(fd)};
  made.socket_.get()->share();
  detail::learn_peer(made.socket_);
  return made;
}

void udp_socket::connect(const endpoint& to, std::error_code& error) {
  detail::socket_handle fresh;
  if (!socket_.get()) {
    const int fd = detail::make_socket(to, SOCK_DGRAM, error);
    if (error) return;
    fresh = detail::socket_handle(fd);
    fresh.get()->share();
  }
  const detail::socket_handle& used = socket_.get() ? socket_ : fresh;
  detail::with_fd(used, error, [&](int fd) { return detail::kernel::connect(fd, to.data(), to.size()); });
  if (!error) used.get()->set_peer(to);
  if (!error && fresh.get()) socket_ = std::move(fresh);
}

void udp_socket::connect(const endpoint& to) {
  std::error_code error;
  connect(to, error);
  if (error) detail::fail(error, "ulexite: connecting to " + to.str());
}

// For a Unix socket that is not the peer, no edge follows EAGAIN when there is room.
void udp_socket::send_until(std::int64_t deadline, const void* data, std::size_t size, const endpoint* to,
                            std::error_code& error) {
  socket* const used = socket_.get(error);
  if (!used) return;
  const auto send_once = [&](int fd) -> ssize_t {
    if (!to) return detail::kernel::send(fd, data, size, MSG_NOSIGNAL);
    return result_or_errno(::sendto(fd, data, size, MSG_NOSIGNAL, to->data(), to->size()));
  };
  if (to && to->family() == address_family::local)
    detail::perform_by_polling(*used, socket::write_side, deadline, error, send_once);
  else
    used->perform(socket::write_side, deadline, error, send_once);
}

void udp_socket::throw_if_unsent(const std::error_code& error, const endpoint* to) const {
  if (error && to) detail::fail(error, "ulexite: sending to " + to->str());
  throw_if(error, "sending to");
}

void udp_socket::send_to(const void* data, std::size_t size, const endpoint& to, std::error_code& error) {
  send_until(expiry_of(socket_, socket::write_side), data, size, &to, error);
}

void udp_socket::send_to(const void* data, std::size_t size, const endpoint& to) {
  std::error_code error;
  send_to(data, size, to, error);
  throw_if_unsent(error, &to);
}

void udp_socket::send(const void* data, std::size_t size, std::error_code& error) {
  send_until(expiry_of(socket_, socket::write_side), data, size, nullptr, error);
}

void udp_socket::send(const void* data, std::size_t size) {
  std::error_code error;
  send(data, size, error);
  throw_if_unsent(error, nullptr);
}

std::size_t udp_socket::receive_until(std::int64_t deadline, void* data, std::size_t size, endpoint* from,
                                      std::error_code& error) {
  if (from) *from = endpoint();
  socket* const used = socket_.get(error);
  if (!used) return 0;
  sockaddr_storage name{};
  iovec buffer{data, size};
  msghdr message{};
  const std::size_t got = used->perform(socket::read_side, deadline, error, [&](int fd) {
    message.msg_name = from ? &name : nullptr;
    message.msg_namelen = from ? sizeof name : 0;
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    return detail::kernel::recvmsg(fd, &message, 0);
  });
  if (error) return 0;
  if (message.msg_flags & MSG_TRUNC) error = std::make_error_code(std::errc::message_size);
  try {
    if (from && message.msg_namelen > 0) *from = detail::endpoint_of(name, message.msg_namelen);
  } catch (const std::system_error&) {  // of an adopted socket of another family
  }
  return got;
}

std::size_t udp_socket::receive_from(void* data, std::size_t size, endpoint& from, std::error_code& error) {
  return receive_until(expiry_of(socket_, socket::read_side), data, size, &from, error);
}

std::size_t udp_socket::receive_from(void* data, std::size_t size, endpoint& from) {
  std::error_code error;
  const std::size_t got = receive_from(data, size, from, error);
  throw_if(error, "receiving from");
  return got;
}

void udp_socket::peek(socket& at, std::int64_t deadline, std::error_code& error) {
  char first;
  at.perform(socket::read_side, deadline, error,
             [&](int fd) { return detail::kernel::recv(fd, &first, sizeof first, MSG_PEEK); });
}

std::size_t udp_socket::receive(void* data, std::size_t size, std::error_code& error) {
  return receive_until(expiry_of(socket_, socket::read_side), data, size, nullptr, error);
}

std::size_t udp_socket::receive(void* data, std::size_t size) {
  std::error_code error;
  const std::size_t got = receive(data, size, error);
  throw_if(error, "receiving from");
  return got;
}

}  // namespace ulexite::net
