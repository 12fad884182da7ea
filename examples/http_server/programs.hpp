#pragma once

#include "incoming.hpp"
#include "outgoing.hpp"

namespace http_server {

// Programs that answer at targets that are not files. They throw exceptions of `in` and `out`.

// A fixed small answer, for benchmarks.
void hello(incoming& in, outgoing& out);
// Answers with the number of received bytes and their SHA-256, as JSON.
void upload(incoming& in, outgoing& out);
// Sends the received bytes back, in chunks, while they arrive.
void echo(incoming& in, outgoing& out);

}  // namespace http_server
