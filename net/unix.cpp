#include <ulexite/base/error.hpp>
#include <ulexite/net/socket/socket.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/unix.hpp>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace ulexite::net {
namespace {

constexpr std::size_t most_descriptors = 253;  // SCM_MAX_FD of Linux

// Room for one message of descriptors, aligned as the system wants it.
struct alignas(cmsghdr) control_room {
  std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> bytes{};
};

bool is_unix(int fd) noexcept {
  int domain = 0;
  socklen_t size = sizeof domain;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

void put_descriptors(msghdr& message, control_room& room, std::span<const int> descriptors) noexcept {
  message.msg_control = room.bytes.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
}

// Takes the passed descriptors. Closes those for which there is no memory.
void take_descriptors(msghdr& message, std::vector<int>& into) {
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    std::array<int, most_descriptors> taken{};
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(taken.data(), CMSG_DATA(head), count * sizeof(int));
    try {
      into.insert(into.end(), taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(count));
    } catch (...) {
      for (const int fd : std::span(taken).first(count)) ::close(fd);
      throw;
    }
  }
}

}  // namespace

// Gives the functions below access to the socket of a tcp_stream.
class descriptor_passing {
 public:
  static std::size_t send_first(unix_stream& to, std::string_view data, std::span<const int> descriptors,
                                std::error_code& error) {
    detail::socket* const used = to.socket_.get(error);
    if (!used) return 0;
    control_room room;
    iovec bytes{const_cast<char*>(data.data()), data.size()};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) put_descriptors(message, room, descriptors);
    return used->send(error, [&](int fd) -> ssize_t {
      if (!descriptors.empty() && !is_unix(fd)) return -EOPNOTSUPP;  // TCP would send the data alone
      return detail::result_or_errno(::sendmsg(fd, &message, MSG_NOSIGNAL));
    });
  }

  static std::size_t receive(unix_stream& from, void* data, std::size_t size, std::vector<int>& descriptors,
                             std::error_code& error) {
    detail::socket* const used = from.socket_.get(error);
    if (!used || size == 0) return 0;
    control_room room;
    iovec bytes{data, size};
    msghdr message{};
    const std::size_t got = used->receive(error, [&](int fd, bool&) {
      message.msg_iov = &bytes;
      message.msg_iovlen = 1;
      message.msg_control = room.bytes.data();
      message.msg_controllen = room.bytes.size();
      return detail::result_or_errno(::recvmsg(fd, &message, MSG_CMSG_CLOEXEC));
    });
    if (error) return 0;
    take_descriptors(message, descriptors);
    if (message.msg_flags & MSG_CTRUNC) error = std::make_error_code(std::errc::too_many_files_open);
    return got;
  }

  static void throw_if(const unix_stream& on, const std::error_code& error, const char* doing) {
    on.throw_if(error, doing);
  }
};

peer_credentials credentials_of_peer(const unix_stream& stream) {
  if (stream.option(SOL_SOCKET, SO_DOMAIN) != AF_UNIX)  // TCP answers with process 0
    throw std::system_error(std::make_error_code(std::errc::not_supported),
                            "ulexite: asking for the credentials of a peer that is not connected by a Unix socket");
  const auto told = stream.option<ucred>(SOL_SOCKET, SO_PEERCRED);
  return {.process = told.pid, .user = told.uid, .group = told.gid};
}

void send_descriptors(unix_stream& to, std::string_view data, std::span<const int> descriptors,
                      std::error_code& error) {
  if (data.empty()) throw std::invalid_argument("send_descriptors: no data, but descriptors need at least one byte");
  if (descriptors.size() > most_descriptors)
    throw std::invalid_argument("send_descriptors: " + std::to_string(descriptors.size()) +
                                " descriptors, the most is " + std::to_string(most_descriptors));
  const std::size_t sent = descriptor_passing::send_first(to, data, descriptors, error);
  if (!error && sent < data.size()) to.write(data.substr(sent), error);
}

void send_descriptors(unix_stream& to, std::string_view data, std::span<const int> descriptors) {
  std::error_code error;
  send_descriptors(to, data, descriptors, error);
  descriptor_passing::throw_if(to, error, "passing descriptors to");
}

std::size_t receive_descriptors(unix_stream& from, void* data, std::size_t size, std::vector<int>& descriptors,
                                std::error_code& error) {
  return descriptor_passing::receive(from, data, size, descriptors, error);
}

std::size_t receive_descriptors(unix_stream& from, void* data, std::size_t size, std::vector<int>& descriptors) {
  std::error_code error;
  const std::size_t got = receive_descriptors(from, data, size, descriptors, error);
  descriptor_passing::throw_if(from, error, "reading from");
  return got;
}

}  // namespace ulexite::net
