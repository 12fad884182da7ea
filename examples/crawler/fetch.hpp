#pragma once

#include <ulexite/interop/http_client.hpp>

#include <string>

// A server's answer to GET.
struct answer {
  unsigned status = 0;
  std::string type;      // of the content
  std::string location;  // where a redirection leads
  std::string body;      // empty unless it may have links

  [[nodiscard]] bool may_have_links() const { return status < 400 && type.starts_with("text/html"); }
};

// Requests `url`. Reads a body only for its links. Waits; a cancellation point. Throws std::system_error, or
// operation_cancelled.
answer fetch(ulexite::http::client& by, const std::string& url);
