#pragma once

#include <ulexite/net/endpoint.hpp>

#include <string>

// What a server says to GET.
struct answer {
  unsigned status = 0;
  std::string type;      // of the content
  std::string location;  // where a redirection leads
  std::string body;
};

// Asks the server at `to` for `url`, by a connection of its own. Waits; a cancellation point. Throws std::system_error,
// or operation_cancelled.
answer fetch(const ulexite::net::endpoint& to, const std::string& url);
