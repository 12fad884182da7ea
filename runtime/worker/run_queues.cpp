#include <ulexite/runtime/worker/run_queues.hpp>

namespace ulexite::detail {

// Fibers that were woken have three turns of four, because they hold a stack, and their wait is over. Before
// each turn of the woken a pinned fiber has one, because it was woken too; it is left to the main stack, because its
// queue has a lock. So no kind starves another.
[[gnu::noinline]] job* run_queues::next_round_robin() noexcept {
  if (pinned_is_next()) return nullptr;
  if (++woken_turn_ % 4 != 0) {
    pinned_turn_ = true;
    if (job* const woken = pop_woken()) return woken;
  }
  job* mine = pop_ring();
  if (!mine) mine = pop_woken();
  // Exact for the deque, because only the owner adds to it. For what is pinned later, maintenance is asked for.
  only_ring_filled_ = woken_.seems_empty() && !has_pinned();
  return mine;
}

}  // namespace ulexite::detail
