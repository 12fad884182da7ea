#pragma once

#include "counters.hpp"

#include <ulexite/net/tcp.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>

namespace redis_counter {

// Shared by all connections of clients.
struct service {
  counters& all;
  std::chrono::nanoseconds limit;  // for redis, in each request
  std::stop_token closing{};       // set when requests are no longer accepted
  std::atomic<std::uint64_t> requests{0};
};

// Answers the requests of one connection, one after the other, until its reads meet the end. Never throws for errors of
// the client.
void serve(ulexite::net::tcp_stream& client, service& shared);

}  // namespace redis_counter
