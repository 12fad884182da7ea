#pragma once

// The simulated network of an exploration: sockets made in a run exist in the memory of that run only. Servers and
// clients are the ordinary ones of net/; they listen at and connect to ordinary endpoints, over TCP or Unix sockets.

#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <utility>

namespace ulexite::testing {

// How the network of a run behaves. What it may do is chosen by the strategy, so a failing run repeats it.
struct network_options {
  // The time that what is sent takes to the other end.
  std::chrono::nanoseconds latency{0};
  // Up to that much more. What is sent on one connection arrives in its order all the same.
  std::chrono::nanoseconds jitter{0};
  // May a read or a write do less than it could?
  bool short_reads = false;
  // One of that many reads and writes resets its connection. 0: none does.
  unsigned resets = 0;
  // Bytes on their way in one direction of a connection, above which a write waits.
  std::size_t buffer = 64 * 1024;
};

// The rest is for the fibers of a run. Elsewhere they throw usage_error.

// Two ends of one connection.
std::pair<net::tcp_stream, net::tcp_stream> stream_pair();
// From now on nothing reaches the listener at `server`, nor passes over its connections, in both directions, until heal.
// It is kept, as TCP does, and then arrives. Connecting waits.
void partition(const net::endpoint& server);
// Ends the partition of that listener.
void heal(const net::endpoint& server);
// Resets all connections of the listener at `server`. Returns how many there were.
std::size_t reset_connections(const net::endpoint& server);

}  // namespace ulexite::testing
