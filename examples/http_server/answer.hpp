#pragma once

#include "range.hpp"
#include "site.hpp"

#include <ulexite/interop/http_exchange.hpp>

#include <optional>
#include <string>

namespace http_server {

namespace http = ulexite::http;

// The answer for a file, or for a target that has none.
struct answer {
  std::optional<http::response> whole{};  // if it is not about a file; the rest is unused then
  http::status code{};
  std::string fields{};
  open_file file{};
  std::optional<byte_range> part{};  // of `file`, for the body
};

// Makes a header with the common fields.
[[nodiscard]] http::response begin_header(http::status status);

[[nodiscard]] http::response with_text(http::status status, std::string text,
                                       const char* type = "text/plain; charset=utf-8");
// Makes an answer with a text that describes the error.
[[nodiscard]] http::response with_error(http::status status, const std::string& why);
// `allowed` as in "GET, HEAD".
[[nodiscard]] http::response not_allowed(const char* allowed);

// The answer to a request for a file of the site. `path` is that of decode_target.
[[nodiscard]] answer from_site(const http::request& asked, const std::string& path, const site& files);

// Sends an answer. Waits; throws as exchange::send does, and std::system_error when its file cannot be read.
void send(http::exchange& to, answer made);

}  // namespace http_server
