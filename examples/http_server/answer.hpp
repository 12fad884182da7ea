#pragma once

#include "range.hpp"
#include "site.hpp"

#include <ulexite/interop/http_exchange.hpp>

#include <string>

namespace http_server {

namespace http = ulexite::http;

// An answer: a header, and after it either its text or a part of `file`.
struct answer {
  http::response header;
  open_file file{};
  byte_range part{};  // of `file`
};

// Makes a header with the common fields.
[[nodiscard]] http::response begin_header(http::status status, const http::request& asked);

[[nodiscard]] http::response with_text(http::status status, const http::request& asked, std::string text,
                                       const char* type = "text/plain; charset=utf-8");
// Makes an answer with a text that describes the error.
[[nodiscard]] http::response with_error(http::status status, const http::request& asked, const std::string& why);
// `allowed` as in "GET, HEAD".
[[nodiscard]] http::response not_allowed(const http::request& asked, const char* allowed);

// The answer to a request for a file of the site.
[[nodiscard]] answer from_site(const http::request& asked, const site& files);

// Sends an answer. Waits; throws as exchange::send does, and std::system_error when its file cannot be read.
void send(http::exchange& to, answer made);

}  // namespace http_server
