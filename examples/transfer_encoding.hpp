#pragma once

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>

#include <iterator>

namespace examples {

// Whether the header tells where the body ends. Beast ignores any Transfer-Encoding but `chunked`, so the body would
// pass for the next request. A proxy before this server may see it otherwise, and let such a request through.
template <class Header>
bool shows_end_of_body(const Header& header) {
  const auto found = header.equal_range(boost::beast::http::field::transfer_encoding);
  const auto count = std::distance(found.first, found.second);
  return count == 0 || (count == 1 && boost::beast::iequals(found.first->value(), "chunked"));
}

}  // namespace examples
