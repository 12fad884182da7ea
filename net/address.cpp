#include <ulexite/base/nul.hpp>
#include <ulexite/net/address.hpp>
#include <ulexite/net/resolve.hpp>
#include <ulexite/net/socket/numbers.hpp>

#include <algorithm>
#include <stdexcept>

namespace ulexite::net {
namespace {

[[noreturn]] void refuse_address(std::string_view text, const std::string& why) {
  throw std::invalid_argument("\"" + detail::escaped(text) + "\" is no address: " + why);
}

std::string number_of(const endpoint& at) {
  if (at.family() != address_family::ipv4 && at.family() != address_family::ipv6) return "";
  std::string text = at.str();
  text.erase(text.rfind(':'));
  return text.starts_with('[') ? text.substr(1, text.size() - 2) : text;
}

void check_name(std::string_view text, std::string_view host) {
  if (host.empty()) refuse_address(text, "the host is missing");
  if (host == "unix") refuse_address(text, "a host cannot be called that, because \"unix:\" begins a path");
  for (const char c : host)
    if (static_cast<unsigned char>(c) <= ' ' || c == 127 ||
        std::string_view("/:[]@?#*\\").find(c) != std::string_view::npos)
      refuse_address(text, "a host name has no such characters");
}

}  // namespace

address::address(const endpoint& at) : host_(number_of(at)), port_(at.port()), at_(at) {
  if (has_name()) refuse_address("", "the endpoint is none");
}

address::address(std::string_view host, std::uint16_t port) : host_(host), port_(port) {
  if (host.find(':') != host.npos || detail::is_v4_like(host)) {
    at_ = endpoint::ip(host, port);
    host_ = number_of(at_);  // a number has one spelling, however it was written
  } else {
    check_name(host, host);
  }
}

address address::parse(std::string_view text, std::optional<std::uint16_t> default_port) {
  if (text.empty()) refuse_address(text, "it is empty");
  if (text.starts_with("unix:")) return endpoint::parse(text);
  const bool bracket = text.starts_with('[');
  const auto colon = text.find(':', bracket ? std::min(text.find(']'), text.size()) : 0);
  if (colon == text.npos && default_port)
    return bracket ? parse(std::string(text) + ":" + std::to_string(*default_port)) : address(text, *default_port);
  const std::string_view host = text.substr(0, colon);
  if (bracket || detail::is_v4_like(host)) return endpoint::parse(text);
  const std::string_view digits = colon == text.npos ? "" : text.substr(colon + 1);
  if (digits.starts_with("//")) refuse_address(text, "an address has no scheme, only a host and a port");
  if (digits.find(':') != digits.npos && text.find_first_of("/@") == text.npos)
    refuse_address(text, "an IPv6 address must be in brackets");
  check_name(text, host);
  if (digits.empty()) refuse_address(text, "the port is missing");
  const auto port = detail::to_port(digits);
  if (!port) refuse_address(text, "the port \"" + detail::escaped(digits) + "\" is no number from 0 to 65535");
  return address(host, *port);
}

std::string address::str() const { return has_name() ? host_ + ":" + std::to_string(port_) : at_.str(); }

std::vector<endpoint> address::resolve() const {
  if (!has_name()) return {at_};
  return net::resolve(host_, std::to_string(port_));
}

std::vector<endpoint> address::resolve(std::error_code& error) const {
  error.clear();
  if (!has_name()) return {at_};
  return net::resolve(host_, std::to_string(port_), error);
}

}  // namespace ulexite::net
