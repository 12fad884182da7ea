#include <ulexite/base/nul.hpp>
#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/socket/numbers.hpp>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace ulexite::net {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw std::invalid_argument("\"" + detail::escaped(text) + "\" is no endpoint: " + why);
}

// Refuses a NUL, because the system's functions would take the text before it.
void refuse_nul(std::string_view text) {
  if (detail::has_nul(text)) refuse(text, "it contains a NUL");
}

template <class Address>
const Address& as(const endpoint& whole) noexcept {
  return reinterpret_cast<const Address&>(*whole.data());
}

std::uint16_t parse_port(std::string_view text, std::string_view port) {
  if (port.empty()) refuse(text, "the port is missing");
  if (const auto value = detail::to_port(port)) return *value;
  refuse(text, "the port \"" + std::string(port) + "\" is no number from 0 to 65535");
}

// The number of a network interface, given as a name or a number.
std::uint32_t parse_scope(std::string_view text, const std::string& scope) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(scope.data(), scope.data() + scope.size(), number);
  if (error == std::errc() && end == scope.data() + scope.size()) return number;
  number = if_nametoindex(scope.c_str());
  if (number == 0) refuse(text, "there is no network interface \"" + scope + "\"");
  return number;
}

// inet_pton and inet_ntop on texts that may lack a NUL at the end.
bool to_binary(int family, std::string_view address, void* into) {
  return inet_pton(family, std::string(address).c_str(), into) == 1;
}

std::string to_text(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof text);
  return text;
}

endpoint make_v4(std::string_view text, std::string_view address, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  if (!to_binary(AF_INET, address, &made.sin_addr))
    refuse(text, "\"" + std::string(address) + "\" is no IPv4 address" +
                     (detail::is_v4_like(address) ? "" : " (net::address takes names)"));
  return endpoint::from(reinterpret_cast<const sockaddr*>(&made), sizeof made);
}

endpoint make_v6(std::string_view text, std::string_view address, std::uint16_t port) {
  sockaddr_in6 made{};
  made.sin6_family = AF_INET6;
  made.sin6_port = htons(port);
  const auto percent = address.find('%');
  if (!to_binary(AF_INET6, address.substr(0, percent), &made.sin6_addr))
    refuse(text, "\"" + std::string(address) + "\" is no IPv6 address");
  if (percent != address.npos) made.sin6_scope_id = parse_scope(text, std::string(address.substr(percent + 1)));
  return endpoint::from(reinterpret_cast<const sockaddr*>(&made), sizeof made);
}

endpoint make_local(std::string_view text, std::string_view path) {
  sockaddr_un made{};
  made.sun_family = AF_UNIX;
  const bool abstract = path.starts_with('@');
  if (path.size() <= std::size_t{abstract}) refuse(text, "the path is missing");
  if (path.size() >= sizeof made.sun_path)
    refuse(text, "the path is longer than " + std::to_string(sizeof made.sun_path - 1) + " bytes");
  std::memcpy(made.sun_path, path.data(), path.size());
  if (abstract) made.sun_path[0] = '\0';
  const std::size_t size = offsetof(sockaddr_un, sun_path) + path.size() + !abstract;
  return endpoint::from(reinterpret_cast<const sockaddr*>(&made), static_cast<socklen_t>(size));
}

endpoint parse_v6(std::string_view text) {
  const auto close = text.find(']');
  if (close == text.npos) refuse(text, "the ']' is missing");
  const std::string_view rest = text.substr(close + 1);
  if (!rest.starts_with(':')) refuse(text, "\":port\" must follow the ']'");
  return make_v6(text, text.substr(1, close - 1), parse_port(text, rest.substr(1)));
}

// The bytes of sun_path that count: without the final NUL of a path, with the first one of an abstract name.
std::string_view local_name(const endpoint& whole) noexcept {
  constexpr std::size_t start = offsetof(sockaddr_un, sun_path);
  if (whole.size() <= start) return {};
  const char* const name = as<sockaddr_un>(whole).sun_path;
  const std::size_t length = whole.size() - start;
  return {name, name[0] == '\0' ? length : strnlen(name, length)};
}

}  // namespace

endpoint endpoint::parse(std::string_view text) {
  constexpr std::string_view local_prefix = "unix:";
  if (text.empty()) refuse(text, "it is empty");
  refuse_nul(text);
  if (text.starts_with(local_prefix)) return make_local(text, text.substr(local_prefix.size()));
  if (text.starts_with('[')) return parse_v6(text);
  const auto colon = text.rfind(':');
  if (colon == text.npos) refuse(text, "the port is missing");
  if (text.find(':') != colon) refuse(text, "an IPv6 address must stand in brackets");
  return make_v4(text, text.substr(0, colon), parse_port(text, text.substr(colon + 1)));
}

endpoint endpoint::ip(std::string_view address, std::uint16_t port) {
  refuse_nul(address);
  return address.find(':') == address.npos ? make_v4(address, address, port) : make_v6(address, address, port);
}

endpoint endpoint::local(std::string_view path) {
  refuse_nul(path);
  return make_local(path, path);
}

endpoint endpoint::from(const sockaddr* address, socklen_t size) {
  endpoint made;
  // A path of full length without a NUL counts with one, which is not in the structure.
  if (size > sizeof(sockaddr_un) && address->sa_family == AF_UNIX) size = sizeof(sockaddr_un);
  const int family = size < sizeof(sa_family_t) ? AF_UNSPEC : address->sa_family;
  const bool known = (family == AF_INET && size >= sizeof(sockaddr_in)) ||
                     (family == AF_INET6 && size >= sizeof(sockaddr_in6)) ||
                     (family == AF_UNIX && size <= sizeof(sockaddr_un));
  if (!known)
    throw std::invalid_argument("a socket address of family " + std::to_string(family) + " and " +
                                std::to_string(size) + " bytes is no endpoint");
  if (family != AF_UNIX) size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  void* into = &made.short_;
  if (size > sizeof made.short_) {
    const auto path = std::make_shared<sockaddr_un>();
    made.long_ = path;
    into = path.get();
  }
  std::memcpy(into, address, size);
  made.size_ = size;
  return made;
}

address_family endpoint::family() const noexcept {
  switch (size_ == 0 ? AF_UNSPEC : data()->sa_family) {
    case AF_INET: return address_family::ipv4;
    case AF_INET6: return address_family::ipv6;
    case AF_UNIX: return address_family::local;
    default: return address_family::none;
  }
}

std::uint16_t endpoint::port() const noexcept {
  switch (family()) {
    case address_family::ipv4: return ntohs(as<sockaddr_in>(*this).sin_port);
    case address_family::ipv6: return ntohs(as<sockaddr_in6>(*this).sin6_port);
    default: return 0;
  }
}

std::string_view endpoint::path() const noexcept {
  if (family() != address_family::local) return {};
  const std::string_view name = local_name(*this);
  return name.starts_with('\0') ? std::string_view{} : name;
}

std::string endpoint::str() const {
  switch (family()) {
    case address_family::none: return "";
    case address_family::ipv4: return to_text(AF_INET, &as<sockaddr_in>(*this).sin_addr) + ":" + std::to_string(port());
    case address_family::ipv6: {
      const auto& v6 = as<sockaddr_in6>(*this);
      const std::string scope = v6.sin6_scope_id == 0 ? "" : "%" + std::to_string(v6.sin6_scope_id);
      return "[" + to_text(AF_INET6, &v6.sin6_addr) + scope + "]:" + std::to_string(port());
    }
    case address_family::local: break;
  }
  std::string name(local_name(*this));
  if (name.starts_with('\0')) name[0] = '@';
  return "unix:" + name;
}

bool operator==(const endpoint& a, const endpoint& b) noexcept {
  if (a.family() != b.family() || a.port() != b.port()) return false;
  switch (a.family()) {
    case address_family::none: return true;
    case address_family::ipv4: return as<sockaddr_in>(a).sin_addr.s_addr == as<sockaddr_in>(b).sin_addr.s_addr;
    case address_family::ipv6: {
      const auto &left = as<sockaddr_in6>(a), &right = as<sockaddr_in6>(b);
      return left.sin6_scope_id == right.sin6_scope_id && IN6_ARE_ADDR_EQUAL(&left.sin6_addr, &right.sin6_addr);
    }
    case address_family::local: return local_name(a) == local_name(b);
  }
  return false;
}

}  // namespace ulexite::net
