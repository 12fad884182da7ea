#pragma once

#include "machine.hpp"
#include "team.hpp"
#include "text.hpp"

#include <ulexite.hpp>

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>
#include <vector>

namespace tour {

// A small server: a fiber for each connection, which reads and writes as if it had its own thread. Calls serve(stream)
// in each. Returns when the listener has been closed and every connection has ended.
template <class Serve>
void serve_connections(ulexite::net::tcp_listener& listener, Serve serve) {
  team connections;
  std::error_code error;
  for (;;) {
    ulexite::net::tcp_stream stream = listener.accept(error);
    if (error) break;
    connections.spawn([&serve, stream = std::move(stream)]() mutable { serve(std::move(stream)); });
  }
  listener.close();  // if it was not: later clients are refused instead of waiting for ever
  if (error != std::errc::bad_file_descriptor) throw std::system_error(error, "accept");
  connections.wait();
}

// Runs such a server on a free port of the loopback interface and `clients` fibers that call be_client(endpoint,
// number). Throws the first exception. Inside a fiber.
template <class Serve, class BeClient>
void serve_clients(std::size_t clients, Serve serve, BeClient be_client) {
  ulexite::net::tcp_listener listener(ulexite::net::endpoint::parse("127.0.0.1:0"));
  team server;
  server.spawn([&] { serve_connections(listener, serve); });
  team crowd;
  for (std::size_t number = 0; number < clients; ++number)
    crowd.spawn([&, number] { be_client(listener.local_endpoint(), number); });
  crowd.wait();
  listener.close();
  server.wait();
}

// The possible number of clients. Both ends of a connection are ours, and each needs a descriptor.
inline std::size_t possible_clients(std::size_t wanted) {
  return std::max<std::size_t>(1, descriptors_for(2 * wanted) / 2);
}

// A message if there are fewer clients than wanted.
inline std::vector<std::string> told_if_fewer(std::size_t clients, std::size_t wanted) {
  if (clients == wanted) return {};
  return {"only " + grouped(clients) + " clients instead of " + grouped(wanted) +
          ": the limit of open descriptors (ulimit -n) does not allow further ones"};
}

}  // namespace tour
