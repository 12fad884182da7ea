#pragma once

#include <chrono>
#include <cstdint>

namespace http_server {

// What a client may ask of the server. Each time limit ends the connection.
struct limits {
  std::chrono::nanoseconds handshake_time = std::chrono::seconds(10);  // for TLS to be agreed on
  std::chrono::nanoseconds idle_time = std::chrono::seconds(30);       // for the next request to begin
  std::chrono::nanoseconds header_time = std::chrono::seconds(10);     // for all of its header, from its first byte on
  std::chrono::nanoseconds body_time = std::chrono::seconds(60);       // for all of its body, from the header on
  std::chrono::nanoseconds write_time = std::chrono::seconds(30);      // for each block of an answer to be taken
  std::uint64_t least_rate = 16 * 1024;                                // bytes of an answer per second, see outgoing
  std::uint32_t header_size = 16 * 1024;                               // bytes
  std::uint64_t body_size = 1024 * 1024;                               // bytes
};

}  // namespace http_server
