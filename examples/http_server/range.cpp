#include "range.hpp"

#include <algorithm>
#include <charconv>

namespace http_server {
namespace {

// Parses digits only. A number too large for its type becomes the largest.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() ? value : UINT64_MAX;
}

range_request suffix(std::uint64_t wanted, std::uint64_t size) {
  const std::uint64_t length = std::min(wanted, size);
  if (length == 0) return {.kind = range_request::unsatisfiable};
  return {.kind = range_request::part, .range = {size - length, length}};
}

range_request between(std::uint64_t first, std::uint64_t last, std::uint64_t size) {
  if (first >= size) return {.kind = range_request::unsatisfiable};
  return {.kind = range_request::part, .range = {first, std::min(last, size - 1) - first + 1}};
}

}  // namespace

range_request parse_range(std::string_view header, std::uint64_t size) {
  constexpr std::string_view unit = "bytes=";
  if (!header.starts_with(unit)) return {};
  header.remove_prefix(unit.size());
  const auto dash = header.find('-');
  if (dash == header.npos) return {};
  const std::string_view first = header.substr(0, dash), last = header.substr(dash + 1);
  const auto begin = parse_number(first), end = parse_number(last);
  if (first.empty() && end) return suffix(*end, size);
  if (begin && last.empty()) return between(*begin, UINT64_MAX, size);
  if (begin && end && *begin <= *end) return between(*begin, *end, size);
  return {};
}

}  // namespace http_server
