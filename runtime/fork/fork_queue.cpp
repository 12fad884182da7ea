// The rare paths of a worker's forks: the owner starts or takes back a branch, and a thief takes one.

#include <ulexite/runtime/fork/branch.hpp>
#include <ulexite/runtime/fork/fork_queue.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

namespace ulexite::detail {

// A branch becomes a fiber, which takes time and locks: the main stack does it.
task* fork_queue::start_next(bool oldest) noexcept {
  while (branch* const forked = oldest ? forks_.pop_oldest() : forks_.pop_bottom())
    if (task* const started = forked->start(owner_.runtime())) return started;
  return nullptr;
}

// Either `forked` was taken, or above it are branches of fibers that ran here while the fiber that forked it was away.
// These branches then wait as fibers.
bool fork_queue::try_pop_below(branch& youngest, branch& forked) noexcept {
  if (forked.outcome_known()) {
    static_cast<void>(forks_.push(youngest));  // there is room: it was there
    return false;
  }
  // Until `forked` itself is found, or a thief has taken it in between.
  for (branch* above = &youngest; above; above = forks_.pop_bottom()) {
    if (above == &forked) return true;
    if (task* const started = above->start(owner_.runtime())) owner_.add(*started);
  }
  return false;
}

// Called when the queue was empty before this fork.
void fork_queue::notify_others() noexcept {
  if (owner_.is_controlled()) [[unlikely]]
    return simulate_thief();
  if (owner_.others_may_be_woken()) owner_.runtime().parker.wake_one();
}

// In a deterministic run there is no other worker, but one could have taken it.
void fork_queue::simulate_thief() noexcept {
  if (random_below(2) == 0) return;
  if (task* const started = start_next(true)) owner_.add(*started);
}

// Called between two chunks of a loop, or two functions of parallel_invoke, after another thread asked for it. A fiber
// that computes for long keeps the worker from the event loop too. So the switch after this one does maintenance. That
// maintenance starts no forks, because the fiber that made them continues soon.
void fork_queue::yield_slow() noexcept {
  owner_.pace_.maintain_after_next();
  owner_.yield_to_woken();
}

// One thief at a time: each pays a heavy fence, most of them without a result, and the kernel makes them wait for each
// other.
task* fork_queue::steal(runtime_state& rt) noexcept {
  if (forks_.seems_empty() || stealing_.exchange(true, std::memory_order_relaxed)) return nullptr;  // hint
  branch* const oldest = forks_.steal();
  stealing_.store(false, std::memory_order_relaxed);  // hint
  return oldest ? oldest->start(rt) : nullptr;
}

}  // namespace ulexite::detail
