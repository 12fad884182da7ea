#pragma once

#include "command.hpp"
#include "request_parser.hpp"

#include <ulexite/net/tcp.hpp>

#include <chrono>

namespace kv_server {

struct session_limits {
  request_limits requests;
  // The time after which a silent client is disconnected, and a client that does not take a reply.
  std::chrono::seconds idle{300};
};

// Answers a client until it leaves, or sends an invalid request. Requests that arrived together are answered together.
// Once the system's buffers are full, it does not read from a client that does not read.
void attend(ulexite::net::tcp_stream& client, database& home, const session_limits& limits);

}  // namespace kv_server
