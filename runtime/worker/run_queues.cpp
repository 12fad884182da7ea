#include <ulexite/runtime/worker/run_queues.hpp>

namespace ulexite::detail {

// Fibers that were woken have three turns of four, because they hold a stack, and their wait is over. In the other
// turns fibers and jobs alternate. Before each turn of the woken a pinned fiber has one, because it was woken too; it
// is left to the main stack, because its queue has a lock. So no kind starves another.
[[gnu::noinline]] job* run_queues::next_round_robin() noexcept {
  if (pinned_is_next()) return nullptr;
  if (++woken_turn_ % 4 != 0) {
    pinned_turn_ = true;
    if (job* const woken = pop_woken()) return woken;
  }
  jobs_turn_ = !jobs_turn_;
  job* mine = jobs_turn_ ? pop(jobs_) : nullptr;
  if (!mine && !(mine = pop_ring()) && !(mine = pop(jobs_))) mine = pop_woken();
  // Exact for the deques, because only the owner adds to them. For what is pinned later, maintenance is asked for.
  only_ring_filled_ = woken_.seems_empty() && jobs_.seems_empty() && !has_pinned();
  return mine;
}

}  // namespace ulexite::detail
