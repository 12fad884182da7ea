#pragma once

// A range of address space cut into stacks of one size, with their descriptors:
//
//   | slab, descriptors | guard, stack 0 | guard, stack 1 | ...
//
// All of it is untouched zero memory until it is used, so a slab by itself costs almost nothing. It is one memory map,
// because the descriptors have the flags of the stacks; neighbouring slabs merge. Slabs are never unmapped.

#include <ulexite/fiber/stack.hpp>

#include <cstddef>

namespace ulexite::detail {

class stack_slab {
 public:
  // Least address space of the stacks in a slab.
  static constexpr std::size_t space = std::size_t{64} << 20;

  // Maps a slab of stacks of `stack_size` bytes, a power of two, with a guard each. Null if the system refuses; errno
  // is set.
  static stack_slab* make(std::size_t stack_size) noexcept;

  // The stack with `address` in its space or its guard, or null. Async-signal-safe, wait-free.
  static const stack* holding(const void* address) noexcept;
  // The stack with `address` in its guard, or null. Async-signal-safe, wait-free. It does not check that the guard
  // exists, so use it only for an address that faulted.
  static const stack* guarded(const void* address) noexcept;

  // Makes the stacks from `first` on ready for use, guards included: `count` of them, at least one, as a list through
  // `next`. Once for each; any thread.
  stack* carve(std::size_t first, std::size_t count) noexcept;

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  stack_slab(char* stacks, std::size_t stride, std::size_t count, std::size_t guard_size) noexcept
      : stacks_(stacks), stride_(stride), count_(count), guard_size_(guard_size) {}

  bool publish() noexcept;
  [[nodiscard]] const stack* holding_here(const char* address) const noexcept;
  [[nodiscard]] stack* descriptor(std::size_t index) const noexcept;

  char* const stacks_;        // the first guard
  const std::size_t stride_;  // bytes of a stack and its guard
  const std::size_t count_;   // stacks
  const std::size_t guard_size_;
};

}  // namespace ulexite::detail
