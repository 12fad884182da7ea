#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace kv_server {

// Whether one character matches the element at `at` of the pattern: a character, '\' and a character, '?', or a set
// such as [abc], [a-z], [^a-z]. Sets `at` to the next element.
inline bool matches_one(std::string_view pattern, std::size_t& at, char c) {
  const char first = pattern[at++];
  if (first == '?') return true;
  if (first == '\\' && at < pattern.size()) return pattern[at++] == c;
  if (first != '[') return first == c;
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  const auto code = [](char character) { return static_cast<unsigned char>(character); };
  while (at < pattern.size() && pattern[at] != ']') {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    const char low = pattern[at++];
    char high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      high = pattern[at + 1];
      at += 2;
    }
    const auto [least, most] = std::minmax({code(low), code(high)});  // bounds may be reversed, as in Redis
    found |= least <= code(c) && code(c) <= most;
  }
  if (at < pattern.size()) ++at;  // ']', which may be missing, as in Redis
  return found != negated;
}

// Patterns as those of KEYS; fnmatch ends at a zero byte. Only the last '*' is ever tried again, so the time is at most
// the product of the lengths.
inline bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t at = 0, star = pattern.npos, retry = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      retry = i;
    } else if (at < pattern.size() && matches_one(pattern, at, text[i])) {
      ++i;
    } else if (star != pattern.npos) {
      at = star;
      i = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == pattern.npos;
}

}  // namespace kv_server
