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
#include <cstdint>
#include <system_error>

namespace ulexite::net {

// Call it before the close of a connection if the peer may still send. Ends the outgoing side, and reads the input for
// up to `time` or until the peer has closed. A close with unread input would reset the connection, and the peer might
// lose the last answer. After tcp_stream::shutdown_read this waits, for up to `time`, until the peer has received all,
// because Linux answers later bytes with a reset then, and drops what it has not sent. Sets the stream's expiry. Errors
// are not reported. A request to stop ends it, and may throw operation_cancelled.
inline void lingering_close(tcp_stream& stream, std::chrono::nanoseconds time) {
  const std::int64_t end = relative_timeout(time).deadline();
  const auto is_deaf_and_unheard = [fd = stream.native_handle()] {
    pollfd input{.fd = fd, .events = POLLRDHUP, .revents = 0};  // reported also after the peer's end
    tcp_info info{};
    socklen_t size = sizeof info;
    int unacknowledged = 0;
    return ::poll(&input, 1, 0) == 1 && ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED && ::ioctl(fd, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0;
  };
  while (is_deaf_and_unheard() && detail::now_ns() < end) this_fiber::sleep_for(std::chrono::milliseconds(10));
  stream.expires_after(time);
  std::error_code error;
  stream.shutdown_write(error);
  std::array<char, 4096> waste;
  while (!error && stream.read_some(waste.data(), waste.size(), error) > 0) {
  }
}

}  // namespace ulexite::net
