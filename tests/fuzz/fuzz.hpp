#pragma once

// Shared by the fuzz targets. Each defines LLVMFuzzerTestOneInput. A finding is an abort, or a report of a sanitizer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "required: %s\n", what);
  std::abort();
}

// An input in two parts: `choices` decide what the target does with `text`. The first byte says how many there are.
struct input {
  input(const std::uint8_t* data, std::size_t size) {
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    if (all.empty()) return;
    const std::size_t count = std::min<std::size_t>(data[0], all.size() - 1);
    choices = all.substr(1, count);
    text = all.substr(1 + count);
  }

  // A number below `bound`; 0 when all choices are made.
  std::size_t choose(std::size_t bound) {
    if (choices.empty()) return 0;
    const auto choice = static_cast<unsigned char>(choices.front());
    choices.remove_prefix(1);
    return choice % bound;
  }

  std::string_view choices{};
  std::string_view text{};
};

}  // namespace fuzz
