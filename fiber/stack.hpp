#pragma once

// Stacks and who stands on them.
//
// Pairings
//   A  the worker that puts a fiber on a stack (scheduler.cpp) stores owner, release  ->  the overflow handler, on
//      whichever thread faulted, loads it (stack_overflow.cpp), acquire: it sees the identity complete.

#include <ulexite/base/cache_line.hpp>
#include <ulexite/fiber/spawn_place.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

// Who a fiber is, for reports. Read by the overflow handler on the faulting thread, hence plain and trivially readable.
struct fiber_identity {
  std::uint64_t id = 0;
  const char* name = nullptr;  // null: unnamed
  spawn_place where;
};

// One stack, described apart from its memory so that unused stacks can be given back whole. A descriptor, once made,
// lives as long as the process. A cache line of its own: neighbours serve different workers.
//
// State
//   owner   the fiber that is on the stack; null: none. Written by the worker that runs that fiber. Another thread may
//           see it late, but the overflow handler runs on the worker's own thread.
struct alignas(cache_line) stack {
  stack* next = nullptr;                              // link in a pool or cache
  char* low = nullptr;                                // lowest usable byte, just above the guard
  char* high = nullptr;                               // one past the highest byte
  std::atomic<const fiber_identity*> owner{nullptr};  // A
  void* sanitizer = nullptr;                          // context.cpp's, for ThreadSanitizer
  std::uint32_t guard = 0;                            // bytes of the guard, which ends at `low`
  bool dirty = false;                                 // memory may be committed
  bool canary = false;                                // no guard could be had: checked when given back

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(high - low); }
};

// Bytes from the top of the stack down to the deepest page that was touched since the stack's memory was last given
// back: the high-water mark, in whole pages. An estimate where memory was swapped out. A system call for each 4 MiB of
// stack below that page. Any thread.
std::size_t stack_high_water(const stack& stack) noexcept;

// How the guards of this process's stacks were made so far. Any thread; the three may be a moment apart.
struct stack_guards {
  std::size_t installed = 0;   // by MADV_GUARD_INSTALL
  std::size_t protected_ = 0;  // by mprotect
  std::size_t canaries = 0;    // no guard: an overflow is found when the stack is given back, if ever
};
stack_guards count_stack_guards() noexcept;

}  // namespace ulexite::detail
