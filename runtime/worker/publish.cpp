// What makes work visible to other workers, and wakes them: a scheduler's queues as their owner fills them, and takes
// back what it has only offered.

#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <ctime>
#include <utility>

namespace ulexite::detail {
namespace {

// Nanoseconds that the calling thread has computed. A system call.
std::int64_t thread_time() noexcept {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace

// A full ring moves its oldest, and the newcomer behind them, to the queue that all share.
[[gnu::cold, gnu::noinline]] void scheduler::overflow(job& runnable) noexcept {
  while (!ring_.push(runnable)) {
    intrusive_queue<job> evicted;
    if (!ring_.evict<tuning::ring_overflow>([&](job& old) { evicted.push(old); })) continue;
    evicted.push(runnable);
    last_theft_ = {};  // the work is this worker's own now
    counters.overflows.add();
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
    if (ring_.push(*next)) continue;
    intrusive_queue<job> surplus;
    surplus.push(*next);
    surplus.splice(fibers);
    fibers.splice(surplus);
    last_theft_ = {};  // the work is this worker's own now
    counters.overflows.add();
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
  if (!jobs_.push(job)) home_.injected.push(job);
  sides_empty_ = false;
}

void scheduler::enqueue_jobs(intrusive_queue<job>& jobs) noexcept {
  perturb();
  sides_empty_ = false;
  while (job* const job = jobs.pop()) {
    if (jobs_.push(*job)) continue;
    home_.injected.push(*job);
    home_.injected.push(jobs);
  }
  home_.parker.notify();
}

// The woken fiber runs next here; the fiber that was to run next waits its turn, where thieves can take it. Another
// worker is woken for the former now and then only, because this one is likely to take it at once.
void scheduler::wake(task& woken) noexcept {
  perturb();
  if (wake_notice_ != 0) [[unlikely]]
    return wake_with_notice(woken);
  if (migrating) return add(woken);
  if (job* const displaced = put_into_slot(woken)) add(*displaced);
}

// The record comes first: once the woken fiber lies in the slot, another worker may take it.
[[gnu::noinline]] void scheduler::wake_with_notice(task& woken) noexcept {
  if (traced()) {
    record(trace_kind::wake, woken.id);
    note_runnable(woken);
  }
  if (migrating) return add(woken);
  if (job* const displaced = put_into_slot(woken)) return add(*displaced);
  if (wake_notice_ & slot_due) announce_slot();
}

// The fiber that fills the slot may compute on for long, and then another worker should take what lies there. Whether
// it does shows when it lets go, or wakes the next: so a visit is due then. If it did not, there is a pause, twice as
// long each time. What counts is the time that the thread has computed, not the clock's: a worker whose processor was
// taken away, perhaps by the one that it woke, stands still too, and its fibers lose by being parted.
void scheduler::announce_slot() noexcept {
  auto& last = last_slot_wake_;
  if (last.to_be_judged && thread_time() - last.computed < tuning::worthwhile) return;
  const bool useful = others_may_be_woken();
  set_slot_due(useful);
  if (!useful) return;
  home_.parker.wake_one();
  last.to_be_judged = true;
  last.computed = thread_time();
  quanta_per_visit_ = std::max(quanta_per_visit_ - until_housekeeping_, 1U);
  until_housekeeping_ = 0;
}

void scheduler::judge_last_slot_wake(std::int64_t now) noexcept {
  auto& last = last_slot_wake_;
  if (std::exchange(last.to_be_judged, false)) {
    const bool was_worth_it = thread_time() - last.computed >= tuning::worthwhile;
    last.pause = tuning::next_pause(was_worth_it, last.pause, tuning::shortest_pause, tuning::longest_slot_pause);
    last.judged = now;
  }
  set_slot_due(!alone() && now - last.judged >= last.pause);
}

}  // namespace ulexite::detail
