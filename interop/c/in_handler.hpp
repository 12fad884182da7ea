#pragma once

// Calls of the C interface in a signal handler. There the interrupted code may hold a lock of the library.
// ulexite::signal_check knows where handlers run; without it the question costs a load.

#include <atomic>

namespace ulexite::detail::c {

// Whether the calling thread runs a signal handler. Null: not known. Set before main.
inline constinit std::atomic<bool (*)() noexcept> runs_handler{nullptr};

// Reports the wrong call on stderr.
[[gnu::cold, gnu::noinline]] void report_call_in_handler() noexcept;

inline bool refused_in_handler() noexcept {
  const auto ask = runs_handler.load(std::memory_order_relaxed);  // hint
  if (!ask || !ask()) [[likely]]
    return false;
  report_call_in_handler();
  return true;
}

}  // namespace ulexite::detail::c
