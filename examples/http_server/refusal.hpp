#pragma once

#include <cstdint>  // Boost 1.83's Beast uses it without including it

#include <boost/beast/http/status.hpp>

#include <stdexcept>
#include <string>

namespace http_server {

// Thrown if a request cannot be read to its end. It is the answer, and the connection ends.
struct refusal : std::runtime_error {
  refusal(boost::beast::http::status as, const std::string& why) : std::runtime_error(why), status(as) {}

  boost::beast::http::status status;
};

}  // namespace http_server
