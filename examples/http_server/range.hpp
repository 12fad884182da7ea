#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace http_server {

// Part of a file.
struct byte_range {
  std::uint64_t offset = 0, size = 0;
};

struct range_request {
  enum {
    whole,          // an unknown range, or several: answer with everything
    part,           // range
    unsatisfiable,  // no byte of it is in the file
  } kind = whole;
  byte_range range{};
};

// The part of a file of `size` bytes that "bytes=0-99", "bytes=100-" or "bytes=-100" requests.
[[nodiscard]] range_request parse_range(std::string_view header, std::uint64_t size);

}  // namespace http_server
