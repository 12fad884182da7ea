#pragma once

#include <cstdint>  // Boost 1.83's Beast uses it without including it

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>

#include <string_view>

namespace examples {

// What a server sends to a client that waits.
inline constexpr std::string_view continue_now = "HTTP/1.1 100 Continue\r\n\r\n";

// Whether a client of which `parser` has read the header holds its body back until it is asked for. A client of
// HTTP/1.0 does not understand `continue_now`.
template <class Parser>
bool waits_to_continue(const Parser& parser) {
  const auto& header = parser.get();
  return !parser.is_done() && header.version() >= 11 &&
         boost::beast::iequals(header[boost::beast::http::field::expect], "100-continue");
}

}  // namespace examples
