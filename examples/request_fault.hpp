#pragma once

#include <cstdint>  // Boost 1.83's Beast uses it without including it

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/status.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <arpa/inet.h>

namespace examples {

// Why a server must refuse a request after its header. The connection then ends.
struct request_fault {
  boost::beast::http::status status;
  const char* why;
};

// Whether it is a name, an IPv4 address or an IPv6 address in brackets, perhaps with a port; or nothing at all.
inline bool is_host(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  const auto colon = text.rfind(':');
  if (colon != text.npos && text.find(']', colon) == text.npos) {
    if (text.find_first_not_of(digits, colon + 1) != text.npos) return false;
    text = text.substr(0, colon);
  }
  if (text.starts_with('[') && text.ends_with(']')) {
    in6_addr number;
    return ::inet_pton(AF_INET6, std::string(text.substr(1, text.size() - 2)).c_str(), &number) == 1;
  }
  return std::all_of(text.begin(), text.end(), [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') ||
           std::string_view("-._~%!$&'()*+,;=").find(each) != std::string_view::npos;
  });
}

// Whether Transfer-Encoding is another than "chunked", or of HTTP/1.0, which does not know the field.
template <class Header>
bool has_strange_encoding(const Header& header) {
  using boost::beast::http::field;
  const auto count = header.count(field::transfer_encoding);
  return count > 1 ||
         (count == 1 && (header.version() < 11 || !boost::beast::iequals(header[field::transfer_encoding], "chunked")));
}

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
  const auto host = header[field::host];
  if (!is_host({host.data(), host.size()})) return request_fault{status::bad_request, "the Host is none"};
  const auto encodings = header.count(field::transfer_encoding);
  if (encodings == 0) return std::nullopt;
  if (is_old) return request_fault{status::bad_request, "HTTP/1.0 has no Transfer-Encoding"};
  if (has_strange_encoding(header))
    return request_fault{status::not_implemented, "the Transfer-Encoding is not \"chunked\""};
  return std::nullopt;
}

}  // namespace examples
