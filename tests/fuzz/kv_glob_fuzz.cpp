// The patterns of kv_server's KEYS, against a matcher that tries everything.
#include "../../examples/kv_server/glob.hpp"
#include "fuzz.hpp"

#include <string>

namespace {

// Whether the pattern from `at` on matches all of `text`.
bool reference(std::string_view pattern, std::size_t at, std::string_view text) {
  if (at == pattern.size()) return text.empty();
  if (pattern[at] == '*') {
    for (std::size_t i = 0; i <= text.size(); ++i)
      if (reference(pattern, at + 1, text.substr(i))) return true;
    return false;
  }
  return !text.empty() && kv_server::matches_one(pattern, at, text.front()) && reference(pattern, at, text.substr(1));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::input from(data, size);
  if (from.choices.size() > 12 || from.text.size() > 12) return 0;  // the reference takes exponential time
  const std::string pattern(from.choices), text(from.text);         // each in a block of its own
  fuzz::require(kv_server::matches_glob(pattern, text) == reference(pattern, 0, text), "as the reference says");
  return 0;
}
