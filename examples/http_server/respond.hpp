#pragma once

#include "site.hpp"

#include <ulexite/interop/http_exchange.hpp>

namespace http_server {

// Answers a request after its header has been read. The programs (see respond.cpp) take precedence over files of the
// site. Throws exceptions of `now`, and an http::refusal.
void respond(ulexite::http::exchange& now, const site& files);

}  // namespace http_server
