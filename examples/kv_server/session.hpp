#pragma once

#include "command.hpp"
#include "request_parser.hpp"

#include <ulexite/net/tcp.hpp>

#include <chrono>

namespace kv_server {

struct session_limits {
  request_limits requests;
  // A client that is silent for so long is sent away, and so is one that does not take a reply in that time.
  std::chrono::seconds idle{300};
};

// Answers a client until it leaves, or makes no sense. The requests that came together are answered together; a client
// that sends and does not read is not read from either, once the system's buffers are full.
void attend(ulexite::net::tcp_stream& client, database& home, const session_limits& limits);

}  // namespace kv_server
