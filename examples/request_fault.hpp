#pragma once

#include <cstdint>  // Boost 1.83's Beast uses it without including it

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/status.hpp>

#include <optional>

namespace examples {

// Why a server must refuse a request after its header. The connection then ends.
struct request_fault {
  boost::beast::http::status status;
  const char* why;
};

// What is wrong with Host or Transfer-Encoding. Beast ignores any Transfer-Encoding but `chunked`, so the body would
// pass for the next request. A proxy before this server may see it otherwise, and let such a request through. A proxy
// that speaks only HTTP/1.0 does not know the field at all.
template <class Header>
std::optional<request_fault> fault_of(const Header& header) {
  using boost::beast::http::field;
  using boost::beast::http::status;
  const bool is_old = header.version() < 11;
  const auto hosts = header.count(field::host);
  if (hosts > 1) return request_fault{status::bad_request, "there are several Hosts"};
  if (hosts == 0 && !is_old) return request_fault{status::bad_request, "the Host is missing"};
  const auto encodings = header.count(field::transfer_encoding);
  if (encodings == 0) return std::nullopt;
  if (is_old) return request_fault{status::bad_request, "HTTP/1.0 has no Transfer-Encoding"};
  if (encodings > 1 || !boost::beast::iequals(header[field::transfer_encoding], "chunked"))
    return request_fault{status::not_implemented, "the Transfer-Encoding is not \"chunked\""};
  return std::nullopt;
}

}  // namespace examples
