#pragma once

#include "incoming.hpp"
#include "outgoing.hpp"

namespace http_server {

// What answers at targets that are no files. They throw what `in` and `out` throw.

// A fixed small answer, for benchmarks.
void hello(incoming& in, outgoing& out);
// The number of bytes that were sent and their SHA-256, as JSON.
void upload(incoming& in, outgoing& out);
// What was sent, in chunks, while it arrives.
void echo(incoming& in, outgoing& out);

}  // namespace http_server
