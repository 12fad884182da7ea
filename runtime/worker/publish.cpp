// How a worker makes work visible to others, and wakes them. Owner only.
//
// The rule: publish first, then notify. notify reads the idle word after the push, and a worker that falls asleep
// checks the queues after it has changed that word. So one of the two sees the other (parker.hpp). The slot is the
// exception: its fiber runs next here, and another worker is woken for it only now and then.

#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/controlled_run.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

namespace ulexite::detail {

// A full ring moves its oldest, and the newcomer behind them, to the shared queue. So the ring keeps room for
// the next pushes, and the lock is taken once for many.
[[gnu::cold, gnu::noinline]] void scheduler::overflow(job& runnable) noexcept {
  while (!push_any(runnable)) {
    intrusive_queue<job> evicted;
    if (!queues.evict_oldest(evicted)) continue;
    evicted.push(runnable);
    counters().overflows.add();
    runtime_.injected.push(evicted);
    return;
  }
}

// 64 bits never run out, so no number is used twice in a process.
std::uint64_t scheduler::reserve_ids(std::uint64_t count) noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);  // counter
}

// A run of its own numbers its fibers from 1, so that its reports are the same each time. With blocks of 128 the shared
// counter's line moves between processors once for 128 spawns.
std::uint64_t scheduler::next_id() noexcept {
  constexpr std::uint64_t block = 128;
  if (controlled_) return controlled_->next_id();
  if (!spawn_cache_.has_ids()) spawn_cache_.last_id = (spawn_cache_.next_id = reserve_ids(block)) + block;
  return spawn_cache_.next_id++;
}

// A hint: it decides only whether a wake may pay.
bool scheduler::others_may_be_woken() const noexcept { return runtime_.parker.wants_another(runtime_.parker.counts()); }

// Out of line, because add() is inlined into every spawn, and a lone worker never comes here.
void scheduler::notify_others() noexcept {
  if (wake_policy_.suppresses_push()) return;
  wake_policy_.pushes.on_wake(now_ns(), thefts());  // a worker that searches, or is busy, is as good as a woken one
  runtime_.parker.notify();
}

// At maintenance, and after a sleep. Suppressed pushes that are still there are announced when the pause is over.
void scheduler::announce_if_due(std::int64_t now) noexcept {
  note(request::slot_due, !queues.alone() && wake_policy_.slot.over(now));
  if (wake_policy_.announce_due(now, eager()) && queues.may_have_items()) notify_others();
}

// The ring is full. Or, for tests, everything goes to the shared queue, from which any worker takes it.
void scheduler::enqueue_slow(job& runnable) noexcept {
  if (migrating) {
    runtime_.injected.push(runnable);
  } else {
    overflow(runnable);
  }
  if (!queues.alone()) runtime_.parker.notify();
}

// A batch is published by one notify. The surplus goes to the end of the shared queue, so that these start in about
// their order too.
void scheduler::add(intrusive_queue<job>& batch) noexcept {
  perturb();
#ifndef ULEXITE_DEBUG_MIGRATE
  while (job* const next = batch.pop()) {
    if (push_any(*next)) continue;
    intrusive_queue<job> surplus;
    surplus.push(*next);
    surplus.splice(batch);
    batch.splice(surplus);
    counters().overflows.add();
    break;
  }
#endif
  if (!batch.empty()) runtime_.injected.push(batch);
  if (!queues.alone()) runtime_.parker.notify();
}

void scheduler::add_job(job& job) noexcept {
  perturb();
  if (migrating || !queues.push_job(job)) return enqueue_slow(job);
  notify_others_after_publishing();
}

// The woken fiber runs next here, because its data is in this processor's caches. The fiber that was to run next goes
// to the ring, where thieves can take it. For the woken fiber another worker is woken only rarely, because this worker
// will probably run it next.
void scheduler::wake(task& woken) noexcept {
  perturb();
  if (forks_.interrupts.at_wake()) [[unlikely]]
    return wake_slow(woken);
  if (migrating) return add(woken);
  if (job* const displaced = queues.put_into_slot(woken)) enqueue_displaced(*displaced);
}

// Rare: the wake is recorded, or the slot is announced. The record comes first, because another worker may take the
// fiber as soon as it is in the slot.
[[gnu::noinline]] void scheduler::wake_slow(task& woken) noexcept {
  if (traced()) {
    record(trace_kind::wake, woken.id);
    stamp_runnable(woken);
  }
  if (migrating) return add(woken);
  if (job* const displaced = queues.put_into_slot(woken)) return enqueue_displaced(*displaced);
  if (noted(request::slot_due)) announce_slot();
}

// The mark comes after the wake, which asks whether the fiber that it displaces was marked.
void scheduler::wake_holder(task& woken) noexcept {
  wake(woken);
  queues.mark_holder(woken);
}

// A fiber that has left the slot waits at the end of the ring. But one that was given a lock takes its turn among the
// woken fibers, because others wait until it unlocks.
[[gnu::noinline]] void scheduler::enqueue_displaced(job& waits) noexcept {
  if (!queues.unmark_holder(waits) || !queues.push_woken(waits)) return add(waits);
  notify_others_after_publishing();
}

// Wakes another worker for the fiber in the slot, if that may pay (wake_policy.hpp).
void scheduler::announce_slot() noexcept {
  note(request::slot_due, false);  // until the next maintenance
  if (!others_may_be_woken()) return;
  wake_policy_.slot.on_wake(now_ns(), thefts());
  runtime_.parker.wake_one();
}

}  // namespace ulexite::detail
