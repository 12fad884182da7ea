#pragma once

#include <chrono>
#include <cstdint>

namespace http_server {

// The limits for clients. Each time limit ends the connection.
struct limits {
  std::chrono::nanoseconds handshake_time = std::chrono::seconds(10);  // for the TLS handshake
  std::chrono::nanoseconds idle_time = std::chrono::seconds(30);       // until the next request begins
  std::chrono::nanoseconds header_time = std::chrono::seconds(10);     // for all of its header, from its first byte on
  std::chrono::nanoseconds body_time = std::chrono::seconds(60);       // for all of its body, from the header on
  std::chrono::nanoseconds write_time = std::chrono::seconds(30);      // until a block of an answer is taken
  std::uint64_t least_rate = 16 * 1024;                                // bytes of an answer per second, see outgoing
  std::uint32_t header_size = 16 * 1024;                               // bytes
  std::uint64_t body_size = 1024 * 1024;                               // bytes
};

}  // namespace http_server
