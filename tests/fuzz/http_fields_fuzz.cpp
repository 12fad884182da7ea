// The parts that http_server reads from a request: the path, ranges and dates.
#include "../../examples/http_server/condition.hpp"
#include "../../examples/http_server/range.hpp"
#include "../../examples/http_server/site.hpp"
#include "fuzz.hpp"

#include <chrono>
#include <ctime>
#include <string>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input from(data, size);
  const std::string text(from.text);  // in a block of its own
  if (const std::string path = http_server::decode_target(text); !path.empty()) {
    fuzz::require(path.starts_with('/') && path.find('\0') == path.npos, "a path of a file");
    fuzz::require(!http_server::type_of(path).empty(), "a file has a type");
  }
  const std::size_t file_size = from.choose(256) * (from.choose(2) == 0 ? 1 : std::size_t{1} << 55);
  const auto asked = http_server::parse_range(text, file_size);
  if (asked.kind == http_server::range_request::part)
    fuzz::require(
        asked.range.size > 0 && asked.range.offset < file_size && asked.range.size <= file_size - asked.range.offset,
        "a range lies in the file");
  constexpr std::time_t year_10000 = 253402300800;  // is written, but not read: a year has four digits
  if (const auto time = http_server::parse_http_date(text); time && *time < year_10000) {
    const std::string printed = ulexite::http::date(std::chrono::sys_seconds(std::chrono::seconds(*time)));
    fuzz::require(http_server::parse_http_date(printed) == time, "a date is printed as it is read");
  }
  return 0;
}
