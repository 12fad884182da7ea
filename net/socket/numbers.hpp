#pragma once

// The numbers in the texts of addresses.

#include <ulexite/base/standard.hpp>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace ulexite::detail {

// Parses a port in digits. Returns nothing for any other text, or a number above 65535.
inline std::optional<std::uint16_t> to_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

// Whether a host is an IPv4 address, or would be one.
inline bool is_v4_like(std::string_view host) noexcept {
  return !host.empty() && host.find_first_not_of("0123456789.") == host.npos;
}

}  // namespace ulexite::detail
