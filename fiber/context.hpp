#pragma once

#include <ulexite/base/atomics.hpp>
#include <ulexite/base/sanitizers.hpp>
#include <ulexite/fiber/floating_controls.hpp>
#include <ulexite/fiber/stack.hpp>

// A sanitizer changes the layout of what follows, so a program must be built like its library: if it is not, it does
// not link, for want of one of these.
#if ULEXITE_ASAN
#define ULEXITE_BUILT_AS ulexite_is_built_with_address_sanitizer
#elif ULEXITE_TSAN
#define ULEXITE_BUILT_AS ulexite_is_built_with_thread_sanitizer
#else
#define ULEXITE_BUILT_AS ulexite_is_built_without_sanitizer
#endif
extern "C" const char ULEXITE_BUILT_AS;

namespace ulexite::detail {

[[gnu::used]] inline const char* const built_as = &ULEXITE_BUILT_AS;

// What belongs to a thread although C++ thinks of it as belonging to a computation: a switch takes it out of the thread
// and puts it back where the computation goes on. One per thread that switches, made by that thread.
struct switch_thread {
  switch_thread() noexcept;

  struct exception_globals {  // the Itanium C++ ABI's, of which every thread has one
    void* caught;
    unsigned int uncaught;
  };
  exception_globals* exceptions;
  int* error;                  // errno
  floating_controls floating;  // that every computation starts with
};

// Where a computation was left: its registers lie on its stack.
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
