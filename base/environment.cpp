#include <ulexite/base/environment.hpp>
#include <ulexite/base/panic.hpp>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace ulexite::detail {

std::uint64_t number_of_environment(const char* variable, std::uint64_t otherwise) noexcept {
  const char* const given = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): see above
  if (!given || !*given) return otherwise;
  const char* const end = given + std::strlen(given);
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(given, end, value);
  if (error == std::errc() && rest == end) return value;
  warn("%s=%s is not a number from 0 to 2^64 - 1: it is ignored", variable, given);
  return otherwise;
}

}  // namespace ulexite::detail
