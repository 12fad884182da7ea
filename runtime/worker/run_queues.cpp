#include <ulexite/runtime/worker/run_queues.hpp>

namespace ulexite::detail {

// Fibers that were woken have three turns of four, because they hold a stack, and their wait is over. In
// the other turns fibers and jobs alternate. So no kind starves another.
[[gnu::noinline]] job* run_queues::next_by_turns() noexcept {
  if (++woken_turn_ % 4 != 0)
    if (job* const woken = pop_woken()) return woken;
  jobs_turn_ = !jobs_turn_;
  job* mine = jobs_turn_ ? pop(jobs_) : nullptr;
  if (!mine && !(mine = pop_ring()) && !(mine = pop(jobs_))) mine = pop_woken();
  sides_empty_ = woken_.seems_empty() && jobs_.seems_empty();  // exact, because only the owner adds to them
  return mine;
}

}  // namespace ulexite::detail
