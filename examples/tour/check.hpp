#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tour {

// Thrown when a computed result is wrong.
class wrong_result : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check(bool holds, const std::string& what) {
  if (!holds) throw wrong_result(what);
}

template <class T, class U>
void check_equal(const std::string& what, const T& is, const U& expected) {
  if (is == expected) return;
  std::ostringstream text;
  text << what << ": " << is << " instead of " << expected;
  throw wrong_result(text.str());
}

}  // namespace tour
