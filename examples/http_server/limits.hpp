#pragma once

#include <ulexite/interop/http_exchange.hpp>

namespace http_server {

using limits = ulexite::http::limits;

}  // namespace http_server
