#pragma once

// Checks of texts for the system, which reads each text only up to its first NUL. Internal: not for users.

#include <ulexite/base/standard.hpp>

#include <string>
#include <string_view>

namespace ulexite::detail {

inline bool has_nul(std::string_view text) noexcept { return text.find('\0') != text.npos; }

// The text with "\0" for each NUL, because what() of an exception ends at the first NUL.
inline std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) c == '\0' ? made += "\\0" : made += c;
  return made;
}

// A name for a message. A NUL in it is escaped, and the message then says so.
inline std::string shown(std::string_view name) {
  return has_nul(name) ? '"' + escaped(name) + "\", which contains a NUL" : std::string(name);
}

}  // namespace ulexite::detail
