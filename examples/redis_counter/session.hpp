#pragma once

#include "counters.hpp"

#include <ulexite/net/tcp.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>

namespace redis_counter {

// What all connections of clients share.
struct service {
  counters& all;
  std::chrono::nanoseconds limit;  // for redis, in each request
  std::stop_token closing{};       // told when no more requests are wanted
  std::atomic<std::uint64_t> requests{0};
};

// Answers the requests of one connection, one after the other, until its reads meet the end. Never throws for what a
// client does.
void serve(ulexite::net::tcp_stream& client, service& shared);

}  // namespace redis_counter
