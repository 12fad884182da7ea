#pragma once

// The stacks that a worker keeps for its next fibers: those of the runtime's default size. One stack of the pool costs
// a lock and, at its first use, a system call. The cache takes and returns several at a time, so that most fibers pay
// neither. Owner only, except at the runtime's end.

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/fiber/valgrind.hpp>
#include <ulexite/runtime/worker_parts/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ulexite::detail {

class stack_cache {
 public:
  // Memcheck reports accesses below the last frame on a stack, until something is pushed there.
  explicit stack_cache(stack_pool& pool) noexcept : size_(pool.stack_size()), offset_step_(under_valgrind() ? 0 : 1) {}
  stack_cache(const stack_cache&) = delete;
  stack_cache& operator=(const stack_cache&) = delete;

  // A stack from here, or null.
  [[nodiscard, gnu::always_inline]] stack* take_cached() noexcept {
    if (!stacks_) return nullptr;
    stack* const taken = stacks_;
    stacks_ = taken->next;
    --count_;
    return taken;
  }
  // A stack of the default size. Null when the machine refuses the memory.
  [[nodiscard]] stack* take() noexcept { return stacks_ || refill() ? take_cached() : nullptr; }
  // Takes back a stack of any size. It keeps one of the default size, and returns half of them when it has too many.
  void recycle(stack& left) noexcept {
    if (left.size() != size_ || left.canary) [[unlikely]]
      return give(left);
    left.next = stacks_;
    stacks_ = &left;
    if (++count_ > tuning::stacks_kept) give_half_back();
  }
  // Returns all to the pool.
  void give_back() noexcept {
    pool().give(std::exchange(stacks_, nullptr));
    count_ = 0;
  }

  // Where on its stack the next fiber starts, in steps of 128 bytes. Each start differs from the last one, so that the
  // tops of many stacks do not fall into the same sets of a cache.
  [[nodiscard]] unsigned next_stack_offset() noexcept { return offset_ += offset_step_; }

 private:
  [[nodiscard]] stack_pool& pool() const noexcept { return stack_pool::of_size(size_); }
  // If refills follow each other without a return to the pool, the number of waiting fibers grows. So each takes twice
  // as many as the last, up to a bound that limits the unused pages of a worker.
  bool refill() noexcept {
    stacks_ = pool().take(wanted_);
    if (!stacks_) return false;
    wanted_ = std::min(2 * wanted_, tuning::most_stacks_taken);
    count_ = 0;
    for (stack* s = stacks_; s; s = s->next) ++count_;
    return true;
  }
  [[gnu::noinline]] static void give(stack& left) noexcept {
    left.next = nullptr;
    stack_pool::of_size(left.size()).give(&left);
  }
  // Half of them stay. Otherwise a worker could alternate between returns and refills. More fibers end here than begin,
  // so the next refill is small again.
  [[gnu::noinline]] void give_half_back() noexcept {
    wanted_ = tuning::stacks_kept / 2;
    stack* last_kept = stacks_;
    for (unsigned i = 1; i < tuning::stacks_kept / 2; ++i) last_kept = last_kept->next;
    stack* const surplus = std::exchange(last_kept->next, nullptr);
    count_ = tuning::stacks_kept / 2;
    pool().give(surplus);
  }

  // The members are used by the worker only. A stack in the list is linked by stack::next.
  const std::size_t size_;   // of its stacks
  stack* stacks_ = nullptr;  // a list
  unsigned count_ = 0;
  unsigned wanted_ = tuning::stacks_kept / 2;  // at the next refill; doubled by each refill, reset by give_half_back
  unsigned offset_ = 0;
  const unsigned offset_step_;  // 0: every fiber starts at the same place of its stack
};

}  // namespace ulexite::detail
