#pragma once

#include <ulexite/base/atomics.hpp>
#include <ulexite/base/sanitizers.hpp>
#include <ulexite/fiber/floating_controls.hpp>
#include <ulexite/fiber/stack.hpp>

// A sanitizer changes the layout of the classes below, and _GLIBCXX_DEBUG that of std::vector and its like, which
// net::resolve returns. So a program must be built like its library. If it is not, one of these symbols is missing and
// it does not link.
#if ULEXITE_ASAN
#define ULEXITE_SANITIZED with_address_sanitizer
#elif ULEXITE_TSAN
#define ULEXITE_SANITIZED with_thread_sanitizer
#else
#define ULEXITE_SANITIZED without_sanitizer
#endif
#ifdef _GLIBCXX_DEBUG
#define ULEXITE_CONTAINERS and_with_GLIBCXX_DEBUG
#else
#define ULEXITE_CONTAINERS and_without_GLIBCXX_DEBUG
#endif
#define ULEXITE_NAME_OF_BUILD(sanitized, containers) ULEXITE_JOIN_NAMES(sanitized, containers)
#define ULEXITE_JOIN_NAMES(sanitized, containers) ulexite_is_built_##sanitized##_##containers
#define ULEXITE_BUILT_AS ULEXITE_NAME_OF_BUILD(ULEXITE_SANITIZED, ULEXITE_CONTAINERS)
extern "C" const char ULEXITE_BUILT_AS;

namespace ulexite::detail {

[[gnu::used]] inline const char* const built_as = &ULEXITE_BUILT_AS;

// State that the C++ runtime keeps for each thread, although it belongs to a computation. A switch saves it from the
// thread, and restores it in the thread on which the computation continues. Each thread that switches makes one object.
struct switch_thread {
  switch_thread() noexcept;

  struct exception_globals {  // of the Itanium C++ ABI; every thread has one
    void* caught;
    unsigned int uncaught;
  };
  exception_globals* exceptions;
  int* error;                  // errno
  floating_controls floating;  // the initial ones of every computation
};

// The saved state of a suspended computation. Its registers are on its stack.
struct context {
  void* frame = nullptr;
#if ULEXITE_ASAN
  void* fake_stack = nullptr;
  const void* low = nullptr;
  std::size_t size = 0;
#endif
#if ULEXITE_TSAN
  void* sanitizer = nullptr;
#endif
};

}  // namespace ulexite::detail
