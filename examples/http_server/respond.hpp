#pragma once

#include "incoming.hpp"
#include "outgoing.hpp"
#include "site.hpp"

namespace http_server {

// Answers a request after its header has been read. The programs (see respond.cpp) take precedence over files of the
// site. Throws exceptions of `in` and `out`.
void respond(incoming& in, outgoing& out, const site& files);

}  // namespace http_server
