// One stack of the pool costs a lock and, at its first use, a system call. The cache takes and returns several at a
// time, so that most fibers pay neither.

#include <ulexite/fiber/valgrind.hpp>
#include <ulexite/runtime/worker/stack_cache.hpp>

#include <algorithm>
#include <utility>

namespace ulexite::detail {

// Memcheck reports accesses below the last frame on a stack, until something is pushed there.
stack_cache::stack_cache(stack_pool& pool) noexcept
    : pool_(pool), size_(pool.stack_size()), offset_step_(under_valgrind() ? 0 : 1) {}

stack* stack_cache::take() noexcept { return stacks_ || refill() ? take_kept() : nullptr; }

void stack_cache::give(stack& left) noexcept {
  left.next = nullptr;
  stack_pool::of_size(left.size()).give(&left);
}

// If refills follow each other without a return to the pool, the number of waiting fibers grows. So each takes twice as
// many as the last, up to a bound that limits the unused pages of a worker.
bool stack_cache::refill() noexcept {
  stacks_ = pool_.take(wanted_);
  if (!stacks_) return false;
  wanted_ = std::min(2 * wanted_, tuning::most_stacks_taken);
  count_ = 0;
  for (stack* s = stacks_; s; s = s->next) ++count_;
  return true;
}

// Half of them stay. Otherwise a worker could alternate between returns and refills. More fibers end here than begin,
// so the next refill is small again.
void stack_cache::give_half_back() noexcept {
  wanted_ = tuning::stacks_kept / 2;
  stack* last_kept = stacks_;
  for (unsigned i = 1; i < tuning::stacks_kept / 2; ++i) last_kept = last_kept->next;
  stack* const surplus = std::exchange(last_kept->next, nullptr);
  count_ = tuning::stacks_kept / 2;
  pool_.give(surplus);
}

void stack_cache::give_back() noexcept {
  pool_.give(std::exchange(stacks_, nullptr));
  count_ = 0;
}

}  // namespace ulexite::detail
