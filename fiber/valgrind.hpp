#pragma once

// Tells valgrind's memcheck about stacks, if its header was present when the library was built. The header needs no
// library, and its requests do nothing outside of valgrind.

#include <ulexite/base/standard.hpp>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define ULEXITE_VALGRIND 1
#else
#define ULEXITE_VALGRIND 0
#endif

namespace ulexite::detail {

// Whether the process runs under valgrind.
inline bool under_valgrind() noexcept {
#if ULEXITE_VALGRIND
  return RUNNING_ON_VALGRIND != 0;
#else
  return false;
#endif
}

// Registers [low, high) as a stack for ever. Otherwise memcheck takes a jump into it for a large frame.
inline void register_with_valgrind([[maybe_unused]] char* low, [[maybe_unused]] char* high) noexcept {
#if ULEXITE_VALGRIND
  static_cast<void>(VALGRIND_STACK_REGISTER(low, high - 1));
#endif
}

}  // namespace ulexite::detail
