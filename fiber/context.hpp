#pragma once

#include <ulexite/base/atomics.hpp>
#include <ulexite/fiber/stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define ULEXITE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ULEXITE_ASAN 1
#endif
#endif
#ifndef ULEXITE_ASAN
#define ULEXITE_ASAN 0
#endif

namespace ulexite::detail {

// What belongs to a thread although C++ thinks of it as belonging to a computation: a switch takes it out of the thread
// and puts it back where the computation goes on. One per thread that switches, made by that thread.
struct switch_thread {
  switch_thread() noexcept;

  struct exception_globals {  // the Itanium C++ ABI's, of which every thread has one
    void* caught;
    unsigned int uncaught;
  };
  exception_globals* exceptions;
  int* error;  // errno
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

enum class departure : bool { returns, final };

// Leaves the running computation in `from` and starts entry(thread) on `stack`. Computations whose stacks are all alike
// fall on the same cache lines, so the top is shifted by `colour`. `entry` must end in a final switch. Otherwise like
// switch_context.
switch_thread& start_context(context& from, stack& stack, unsigned colour, void (*entry)(switch_thread&),
                             switch_thread& thread, departure departure = departure::returns) noexcept;

// Leaves the running computation in `from` and goes on in `to`. Returns when somebody switches to `from`, perhaps on
// another thread: the one returned. errno, the exceptions being handled and the floating-point control words stay with
// the computation. departure::final: `from` will never be resumed, and its stack is free once `to` runs.
//
// From Boost.Context's jump_fcontext (Oliver Kowalke, 2009).
switch_thread& switch_context(context& from, context& to, switch_thread& thread,
                              departure departure = departure::returns) noexcept;

// To be called when `stack` goes out of use for now, by another computation than the one that used it.
void forget_context(stack& stack) noexcept;

}  // namespace ulexite::detail
