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
    whole,          // no range that we know, or several: everything is the right answer
    part,           // range
    unsatisfiable,  // nothing of it lies in the file
  } kind = whole;
  byte_range range{};
};

// What "bytes=0-99", "bytes=100-" or "bytes=-100" asks for of a file of `size` bytes.
[[nodiscard]] range_request parse_range(std::string_view header, std::uint64_t size);

}  // namespace http_server
