#pragma once

#include "../service.hpp"
#include "limits.hpp"
#include "rooms.hpp"

#include <ulexite/net/tcp.hpp>

#include <stop_token>
#include <string>

namespace chat {

// Serves one connection with one request: for the page, or for a member's websocket; or for a probe, if `life` is
// given.
void serve_connection(ulexite::net::tcp_stream& tcp, const std::stop_token& closing, const std::string& page,
                      rooms& rooms, const limits& limits, const examples::managed_service* life = nullptr);

}  // namespace chat
