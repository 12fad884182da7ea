#pragma once

#include <ulexite/interop/http_exchange.hpp>

namespace http_server {

// Programs that answer at targets that are not files. They throw exceptions of `now`.

// A fixed small answer, for benchmarks.
void hello(ulexite::http::exchange& now);
// Answers with the number of received bytes and their SHA-256, as JSON.
void upload(ulexite::http::exchange& now);
// Sends the received bytes back, in chunks, while they arrive.
void echo(ulexite::http::exchange& now);

}  // namespace http_server
