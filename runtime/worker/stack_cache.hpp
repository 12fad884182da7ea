#pragma once

// The stacks that a worker keeps for its next fibers: those of the runtime's default size. Owner only, except at the
// runtime's end.

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/worker/tuning.hpp>

#include <cstdint>

namespace ulexite::detail {

class stack_cache {
 public:
  explicit stack_cache(stack_pool& pool) noexcept;
  stack_cache(const stack_cache&) = delete;
  stack_cache& operator=(const stack_cache&) = delete;

  // A stack that is kept here, or null.
  [[nodiscard, gnu::always_inline]] stack* take_kept() noexcept {
    if (!stacks_) return nullptr;
    stack* const taken = stacks_;
    stacks_ = taken->next;
    --count_;
    return taken;
  }
  // A stack of the default size. Null when the machine refuses the memory.
  [[nodiscard]] stack* take() noexcept;
  // Takes back a stack of any size. It keeps one of the default size, and returns half of them when it has too many.
  void recycle(stack& left) noexcept {
    if (left.size() != size_ || left.canary) [[unlikely]]
      return give(left);
    left.next = stacks_;
    stacks_ = &left;
    if (++count_ > tuning::stacks_kept) give_half_back();
  }
  // Returns all to the pool.
  void give_back() noexcept;

  // Where on its stack the next fiber starts, in steps of 128 bytes. Each start differs from the last one, so that the
  // tops of many stacks do not fall into the same sets of a cache.
  [[nodiscard]] unsigned next_stack_offset() noexcept { return offset_ += offset_step_; }

 private:
  bool refill() noexcept;
  static void give(stack& left) noexcept;
  void give_half_back() noexcept;

  // The members are used by the worker only. A stack in the list is linked by stack::next.
  stack_pool& pool_;
  const std::size_t size_;   // of its stacks; a copy, because other threads write to the pool's cache line
  stack* stacks_ = nullptr;  // a list
  unsigned count_ = 0;
  unsigned wanted_ = tuning::stacks_kept / 2;  // at the next refill; doubled by each refill, reset by give_half_back
  unsigned offset_ = 0;
  const unsigned offset_step_;  // 0: every fiber starts at the same place of its stack
};

}  // namespace ulexite::detail
