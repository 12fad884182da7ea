#include "text.hpp"

#include <array>
#include <cstdio>

namespace tour {
namespace {

std::string decimal(double value, const char* unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, unit);
  return text.data();
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string bytes(std::uint64_t size) {
  const auto value = static_cast<double>(size);
  if (size < 1000) return std::to_string(size) + " B";
  if (size < 1'000'000) return decimal(value / 1e3, "kB");
  if (size < 1'000'000'000) return decimal(value / 1e6, "MB");
  return decimal(value / 1e9, "GB");
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return decimal(seconds * 1e6, "us");
  if (seconds < 1) return decimal(seconds * 1e3, "ms");
  return decimal(seconds, "s");
}

std::string rate(double amount, double seconds, const char* of) {
  const double value = seconds > 0 ? amount / seconds : 0;
  const std::string unit = std::string(of) + "/s";
  if (value < 1e3) return decimal(value, unit.c_str());
  if (value < 1e6) return decimal(value / 1e3, ("k " + unit).c_str());
  return decimal(value / 1e6, ("M " + unit).c_str());
}

std::string left(std::string_view text, std::size_t width) {
  std::string padded(text);
  if (padded.size() < width) padded.append(width - padded.size(), ' ');
  return padded;
}

std::string right(std::string_view text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ').append(text) : std::string(text);
}

}  // namespace tour
