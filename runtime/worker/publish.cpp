// What makes work visible to other workers, and wakes them: a scheduler's queues as their owner fills them, and takes
// back what it has only offered.

#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <utility>

namespace ulexite::detail {

// A full ring moves its oldest, and the newcomer behind them, to the queue that all share.
[[gnu::cold, gnu::noinline]] void scheduler::overflow(job& runnable) noexcept {
  while (!queues_.push(runnable)) {
    intrusive_queue<job> evicted;
    if (!queues_.evict_oldest(evicted)) continue;
    evicted.push(runnable);
    thefts_.forget();
    counters().overflows.add();
    home_.injected.push(evicted);
    return;
  }
}

// A hint: does a worker sleep, or is one not started yet, and none searches?
bool scheduler::others_may_be_woken() const noexcept {
  const idle_counts now = home_.parker.counts();
  return now.searching == 0 && (now.sleeping > 0 || now.started < home_.parker.limit());
}

void scheduler::notify_others() noexcept { home_.parker.notify(); }

void scheduler::enqueue_slow(job& runnable) noexcept {
  if (migrating) {
    home_.injected.push(runnable);
  } else {
    overflow(runnable);
  }
  notify_others_after_publishing();
}

// The surplus goes behind what is in the shared queue, so that these start in about their order too.
void scheduler::add(intrusive_queue<job>& fibers) noexcept {
  perturb();
#ifndef ULEXITE_DEBUG_MIGRATE
  while (job* const next = fibers.pop()) {
    if (queues_.push(*next)) continue;
    intrusive_queue<job> surplus;
    surplus.push(*next);
    surplus.splice(fibers);
    fibers.splice(surplus);
    thefts_.forget();
    counters().overflows.add();
    break;
  }
#endif
  if (!fibers.empty()) home_.injected.push(fibers);
  notify_others_after_publishing();
}

void scheduler::enqueue_job(job& job) noexcept {
  perturb();
  push_job(job);
  notify_others_after_publishing();
}

void scheduler::push_job(job& job) noexcept {
  if (!queues_.push_job(job)) home_.injected.push(job);
}

void scheduler::enqueue_jobs(intrusive_queue<job>& jobs) noexcept {
  perturb();
  while (job* const job = jobs.pop()) {
    if (queues_.push_job(*job)) continue;
    home_.injected.push(*job);
    home_.injected.push(jobs);
  }
  home_.parker.notify();
}

// The woken fiber runs next here; the fiber that was to run next waits its turn, where thieves can take it. Another
// worker is woken for the former now and then only, because this one is likely to take it at once.
void scheduler::wake(task& woken) noexcept {
  perturb();
  if (notice_.any()) [[unlikely]]
    return wake_with_notice(woken);
  if (migrating) return add(woken);
  if (job* const displaced = queues_.put_into_slot(woken)) add(*displaced);
}

// The record comes first: once the woken fiber lies in the slot, another worker may take it.
[[gnu::noinline]] void scheduler::wake_with_notice(task& woken) noexcept {
  if (traced()) record(trace_kind::wake, woken.id);
  if (migrating) return add(woken);
  if (job* const displaced = queues_.put_into_slot(woken)) return add(*displaced);
  if (notice_.slot_due()) announce_slot();
}

// Wakes another worker for the fiber in the slot, if that may pay (wake_notice.hpp). A visit is due when the running
// fiber leaves, because that judges this wake.
void scheduler::announce_slot() noexcept {
  if (notice_.too_soon()) return;
  const bool useful = others_may_be_woken();
  notice_.set_slot_due(useful);
  if (!useful) return;
  home_.parker.wake_one();
  notice_.note_slot_wake();
  pace_.visit_early();
}

}  // namespace ulexite::detail
