#pragma once

// The simulated network of an exploration. Sockets made in a run exist in the memory of this run only. Servers and
// clients are ordinary classes of net/. They listen at and connect to ordinary endpoints, over TCP or Unix sockets.

#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <utility>

namespace ulexite::testing {

// The behaviour of a run's network. The strategy makes its choices, so a failing run can be repeated.
struct network_options {
  // The time from a send to the arrival at the other end.
  std::chrono::nanoseconds latency{0};
  // The largest additional time. The bytes of one connection still arrive in order.
  std::chrono::nanoseconds jitter{0};
  // Whether a read or a write may transfer fewer bytes than possible.
  bool short_reads = false;
  // One of `resets` reads and writes resets its connection. 0: none.
  unsigned resets = 0;
  // The number of bytes under way in one direction of a connection above which a write waits. With 0 every write waits
  // for ever, which is reported as a deadlock.
  std::size_t buffer = 64 * 1024;
};

// The functions below are for the fibers of a run. Elsewhere they throw usage_error. A listener at the unspecified
// address, such as 0.0.0.0:80, is named by that address or by one to which clients connect.

// Makes a connection, and returns its two ends.
std::pair<net::tcp_stream, net::tcp_stream> stream_pair();
// Cuts the network around the listener at `server` until heal(): no bytes pass over its connections, in both
// directions. As with TCP, bytes are kept, and arrive after heal(). Attempts to connect wait.
void partition(const net::endpoint& server);
// Ends the partition of that listener.
void heal(const net::endpoint& server);
// Resets all connections of the listener at `server`. Returns their number.
std::size_t reset_connections(const net::endpoint& server);

}  // namespace ulexite::testing
