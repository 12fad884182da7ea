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

  // A stack of `pool` that is kept here, or null.
  [[nodiscard, gnu::always_inline]] stack* take_kept(const stack_pool& pool) noexcept {
    if (&pool != &pool_ || !stacks_) return nullptr;
    stack* const taken = stacks_;
    stacks_ = taken->next;
    --count_;
    return taken;
  }
  // A stack of `pool`. Null when the machine refuses the memory.
  [[nodiscard]] stack* take(stack_pool& pool) noexcept;
  // Takes back a stack of `pool`. It keeps one of the default size, and returns half of them when it has too many.
  void recycle(stack& left, stack_pool& pool) noexcept {
    if (&pool != &pool_ || left.canary) {
      left.next = nullptr;
      pool.give(&left);
      return;
    }
    left.next = stacks_;
    stacks_ = &left;
    if (++count_ > tuning::stacks_kept) give_half_back();
  }
  // Returns all to the pool.
  void give_back() noexcept;

  // Where on its stack the next fiber starts, in steps of 128 bytes. Each start differs from the last one, so that the
  // tops of many stacks do not fall into the same sets of a cache.
  [[nodiscard]] unsigned next_colour() noexcept { return colour_ += colour_step_; }

 private:
  bool refill() noexcept;
  void give_half_back() noexcept;

  // The members are used by the worker only. A stack in the list is linked by stack::next.
  stack_pool& pool_;         // of the default size
  stack* stacks_ = nullptr;  // a list
  unsigned count_ = 0;
  unsigned wanted_ = tuning::stacks_kept / 2;  // at the next refill; doubled by each refill, reset by give_half_back
  unsigned colour_ = 0;
  const unsigned colour_step_;  // 0: every fiber starts at the same place of its stack
};

}  // namespace ulexite::detail
