#pragma once

#include "site.hpp"

#include <ulexite/interop/http_message.hpp>

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace http_server {

namespace http = ulexite::http;

// Distinguishes this state of a file from other states: in quotes, as an ETag is sent.
[[nodiscard]] std::string entity_tag(const open_file& file);

// Whether the request has one of the fields that the next three read, or a range. Most have none, and one look at all
// fields takes less than a search for each.
[[nodiscard]] bool has_condition(const http::request& asked);
// Whether the client wants an answer from this state (If-Match, or without that If-Unmodified-Since).
[[nodiscard]] bool preconditions_hold(const http::request& asked, const open_file& file);
// Whether the client has the file in this state (If-None-Match, or without that If-Modified-Since).
[[nodiscard]] bool client_has(const http::request& asked, const open_file& file);
// Whether a range of this state of the file is wanted (If-Range).
[[nodiscard]] bool range_applies(const http::request& asked, const open_file& file);

// Reads "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6 08:49:37 1994".
[[nodiscard]] std::optional<std::time_t> parse_http_date(std::string_view text);

}  // namespace http_server
