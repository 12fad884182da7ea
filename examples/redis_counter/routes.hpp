#pragma once

#include "counters.hpp"

#include <boost/beast/http.hpp>

#include <chrono>
#include <string>

namespace redis_counter {

using request = boost::beast::http::request<boost::beast::http::string_body>;
using response = boost::beast::http::response<boost::beast::http::string_body>;

// Executes a request within `limit`, and always answers in JSON. Waits; a cancellation point.
[[nodiscard]] response answer(const request& asked, counters& all, std::chrono::nanoseconds limit);

// The answer to an unreadable request. The connection ends with it.
[[nodiscard]] response refusal(boost::beast::http::status status, const std::string& why);

}  // namespace redis_counter
