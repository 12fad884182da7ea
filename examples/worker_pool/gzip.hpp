#pragma once

#include <cstdint>
#include <string>

struct gzip_result {
  std::uint64_t read = 0, written = 0;  // bytes
};

// Compresses the file `from` into the file `to`, which appears as a whole or not at all, and must not exist. A
// cancellation point. Throws std::system_error naming the file.
gzip_result gzip_file(const std::string& from, const std::string& to);
