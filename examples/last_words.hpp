#pragma once

#include <ulexite/net/tcp.hpp>

#include <array>
#include <chrono>
#include <system_error>

namespace examples {

// Call it before the close of a connection if the peer may still send. Ends the outgoing side, and reads the input for
// up to `time` or until the peer has closed. A close with unread input would reset the connection, and the peer might
// lose the last reply. Sets the stream's expiry. Errors and a request to stop end it, and are not reported.
inline void deliver_last_words(ulexite::net::tcp_stream& stream, std::chrono::nanoseconds time) {
  stream.expires_after(time);
  std::error_code error;
  stream.shutdown_write(error);
  std::array<char, 4096> waste;
  while (!error && stream.read_some(waste.data(), waste.size(), error) > 0) {
  }
}

}  // namespace examples
