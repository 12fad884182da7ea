#pragma once

#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <system_error>

namespace examples {

// Whether shutdown_read has ended the input of this TCP socket, as at a stop. The peer may still send, and has not
// received all replies.
inline bool is_deaf_and_unheard(int fd) {
  pollfd input{.fd = fd, .events = POLLRDHUP, .revents = 0};  // reported also after the peer's end
  if (::poll(&input, 1, 0) != 1) return false;
  tcp_info info{};
  socklen_t size = sizeof info;
  int unacknowledged = 0;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_ESTABLISHED &&
         ::ioctl(fd, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0;
}

// Call it before the close of a connection if the peer may still send. Ends the outgoing side, and reads the input for
// up to `time` or until the peer has closed. A close with unread input would reset the connection, and the peer might
// lose the last reply. After shutdown_read this waits, for up to `time`, until the peer has received all replies. When
// both sides are shut, Linux answers later bytes with a reset and drops what it has not sent. Sets the stream's expiry.
// Errors are not reported. A request to stop ends it, and may throw operation_cancelled.
inline void deliver_last_words(ulexite::net::tcp_stream& stream, std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (is_deaf_and_unheard(stream.native_handle()) && std::chrono::steady_clock::now() < end)
    ulexite::this_fiber::sleep_for(std::chrono::milliseconds(10));
  stream.expires_after(time);
  std::error_code error;
  stream.shutdown_write(error);
  std::array<char, 4096> waste;
  while (!error && stream.read_some(waste.data(), waste.size(), error) > 0) {
  }
}

}  // namespace examples
