#pragma once

#include "incoming.hpp"
#include "outgoing.hpp"
#include "site.hpp"

namespace http_server {

// Answers a request whose header has been read: by one of the programs (see respond.cpp), which stand before a file of
// the same name, or by a file of the site. Throws what `in` and `out` throw.
void respond(incoming& in, outgoing& out, const site& files);

}  // namespace http_server
