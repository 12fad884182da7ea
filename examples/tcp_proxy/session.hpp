#pragma once

// One forwarded connection, from its acceptance to its end.

#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/tcp.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tcp_proxy {

struct settings {
  std::string upstream;                           // as the log names it
  std::vector<ulexite::net::endpoint> upstreams;  // where that is; the first that answers is taken
  std::chrono::seconds connect_timeout;           // for all of them together
  std::chrono::seconds idle_timeout;              // without a byte in either direction; 0: none
};

struct totals {
  std::atomic<std::uint64_t> connections{0}, bytes{0};
};

// Connects to the upstream, and forwards until both directions have ended, or one has failed. Logs one line at the end
// in any case. When the fiber is asked to stop, resets both sides.
void forward(ulexite::net::tcp_stream& client, const settings& given, totals& served);

}  // namespace tcp_proxy
