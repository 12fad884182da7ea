#pragma once

// What valgrind's memcheck must know of stacks, if its header was there when the library was built. The header needs no
// library, and what it makes does nothing outside of valgrind.

#include <ulexite/base/standard.hpp>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define ULEXITE_VALGRIND 1
#else
#define ULEXITE_VALGRIND 0
#endif

namespace ulexite::detail {

// Does the process run under valgrind?
inline bool under_valgrind() noexcept {
#if ULEXITE_VALGRIND
  return RUNNING_ON_VALGRIND != 0;
#else
  return false;
#endif
}

// A jump to an address in [low, high) is a change of stacks, for ever. Else memcheck takes it for a large frame.
inline void register_with_valgrind([[maybe_unused]] char* low, [[maybe_unused]] char* high) noexcept {
#if ULEXITE_VALGRIND
  static_cast<void>(VALGRIND_STACK_REGISTER(low, high - 1));
#endif
}

}  // namespace ulexite::detail
