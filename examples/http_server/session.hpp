#pragma once

#include "connections.hpp"
#include "site.hpp"

#include <ulexite/net/tcp.hpp>

#include <chrono>

namespace http_server {

struct limits {
  std::chrono::seconds idle{30};          // for the next request to arrive in full
  std::chrono::seconds progress{30};      // for the client to take each block of an answer
  std::uint64_t body_size = 64 * 1024;    // bytes of a request's body
  std::uint32_t header_size = 16 * 1024;  // bytes of its header
};

// Serves one connection to its end. Never throws for what a client does.
void serve(ulexite::net::tcp_stream stream, const site& files, const limits& limits, connections& all);

}  // namespace http_server
