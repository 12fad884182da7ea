#pragma once

#include "counters.hpp"

#include <ulexite/interop/http_message.hpp>

#include <chrono>
#include <string>

namespace redis_counter {

namespace http = ulexite::http;

// Executes a request within `limit`, and always answers in JSON. Waits; a cancellation point. Throws an http::refusal
// for a client's error.
[[nodiscard]] http::response answer(const http::request& asked, counters& all, std::chrono::nanoseconds limit);

// The answer to an error.
[[nodiscard]] http::response with_error(http::status code, const std::string& why);

}  // namespace redis_counter
