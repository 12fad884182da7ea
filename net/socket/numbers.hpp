#pragma once

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

}  // namespace ulexite::detail
