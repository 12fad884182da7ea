#pragma once

// Stacks and their owners.
//
// Pairings
//   A  the worker that puts a fiber on a stack (scheduler.cpp) stores owner, release  ->  the overflow handler loads it
//      (stack_overflow.cpp), acquire. The handler runs on the thread that faulted. It sees the complete identity.

#include <ulexite/base/cache_line.hpp>
#include <ulexite/fiber/spawn_place.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

// The identity of a fiber, for reports. The overflow handler reads it on the faulting thread, so it is plain data.
struct fiber_identity {
  std::uint64_t id = 0;
  const char* name = nullptr;  // null: unnamed
  spawn_place where;
};

// The descriptor of a stack. It is apart from the stack's memory, so that this memory can be returned whole. A
// descriptor lives as long as the process. It has its own cache line, because neighbours serve different workers.
//
// State
//   owner   the fiber that is on the stack; null: none. Written by the worker that runs that fiber. Another thread may
//           see it late, but the overflow handler runs on the worker's own thread.
struct alignas(cache_line) stack {
  stack* next = nullptr;                              // link in a pool or cache
  char* low = nullptr;                                // lowest usable byte, just above the guard
  char* high = nullptr;                               // one past the highest byte
  std::atomic<const fiber_identity*> owner{nullptr};  // A
  void* sanitizer = nullptr;                          // for ThreadSanitizer, used by context.cpp
  std::uint32_t guard = 0;                            // bytes of the guard, which ends at `low`
  bool dirty = false;                                 // memory may be committed
  bool canary = false;                                // no guard was possible: checked when returned

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(high - low); }
};

// The high-water mark of a stack: the bytes from its top down to the deepest touched page. It counts from the last
// return of the stack's memory. It is an estimate if memory was swapped out. Makes a system call for each 4 MiB of
// untouched stack. Any thread.
std::size_t stack_high_water(const stack& stack) noexcept;

// The number of guards of each kind that this process has made. Any thread; the three numbers may be from slightly
// different times.
struct stack_guards {
  std::size_t installed = 0;   // by MADV_GUARD_INSTALL
  std::size_t protected_ = 0;  // by mprotect
  std::size_t canaries = 0;    // no guard: an overflow is found when the stack is returned, or never
};
stack_guards count_stack_guards() noexcept;

}  // namespace ulexite::detail
