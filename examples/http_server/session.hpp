#pragma once

#include "../service.hpp"
#include "access_log.hpp"
#include "limits.hpp"
#include "site.hpp"

#include <ulexite/coroutine/task.hpp>
#include <ulexite/interop/tls_context.hpp>
#include <ulexite/net/tcp.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <stop_token>

namespace http_server {

// What a reload replaces. A connection keeps what it has begun with.
struct settings {
  limits bounds;
  std::optional<ulexite::tls_context> tls{};  // none: no encryption
};

// Shared by all connections.
struct service {
  const site& files;
  const examples::reloadable<settings>& current;
  const examples::managed_service& life;
  access_log& log;
  std::atomic<std::uint64_t> connections{0}, requests{0};
};

// Serves one connection to its end. Once a stop is requested of `closing`, it ends between two requests; a request
// under way is the last. Throws std::system_error and the like; a client causes those of connection_aborted.
ulexite::task<> serve(ulexite::net::tcp_stream& tcp, std::stop_token closing, service& shared);

}  // namespace http_server
