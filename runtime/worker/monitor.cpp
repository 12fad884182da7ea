// The work of a tick, and the times of the ticks. Only the monitor calls tick(), so its own members need no lock.

#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

namespace ulexite::detail {

void monitor::run() noexcept {
  std::unique_lock lock(runtime_.parker.mutex());
  for (;;) {
    const std::int64_t next = next_tick();
    const bool slept = asleep_;
    const auto changed = [&] { return asleep_ != slept || runtime_.is_ending(); };
    if (next == no_deadline) {
      changed_.wait(lock, changed);
    } else {
      changed_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next)), changed);
    }
    if (runtime_.is_ending()) return;
    asleep_ = false;
    ticks_on_ = std::this_thread::get_id();
    lock.unlock();
    tick();
    lock.lock();
    ticks_on_ = {};
  }
}

// Only the first worker that wakes up makes the system call.
void monitor::wake() noexcept {
  if (std::exchange(asleep_, false)) changed_.notify_one();
}

void monitor::on_wake() noexcept {
  counts.wakes.add();
  wake();
}

// The time of the next tick. In a stopped world a tick does nothing, and its work stays due. After some quiet
// ticks only the stacks remain to be trimmed, and then nothing: the next worker that wakes up wakes the monitor. The
// mutex is held, as in on_wake. So a worker whose wake is not counted here finds asleep_ set.
std::int64_t monitor::next_tick() noexcept {
  const std::int64_t now = now_ns();
  const idle_counts idle = runtime_.parker.counts();
  if (activity_.quiet_ticks < tuning::quiet_ticks_before_sleep || idle.sleeping != idle.started || any_starved() ||
      runtime_.world.is_taken() || counts.wakes.get() != activity_.seen_wakes)
    return now + tuning::tick_interval;
  asleep_ = true;
  const bool asks = calls.when_quiet && activity_.ask_after > 0;
  const std::int64_t asks_at = asks ? activity_.last_busy + activity_.ask_after : no_deadline;
  const std::int64_t trims = trimming_.left > 0 ? now + tuning::trim_interval : no_deadline;
  return std::min({asks_at, trims, std::max(now + tuning::tick_interval, idle_stacks.next_step(activity_.last_busy))});
}

// The rescue comes first, because it may wake workers that then see to the rest. A tick is quiet if no worker woke up
// since the last one and all sleep. When enough time was quiet, the check for deadlocks is called. It is called again
// after four times that time, and so on, because a thread outside may have ended meanwhile.
void monitor::tick() noexcept {
  if (runtime_.world.is_taken()) return;  // it may run code of fibers that never started
  const idle_counts idle = runtime_.parker.counts();
  const std::uint64_t wakes = counts.wakes.get();
  // A quiet tick needs both, because a worker may have woken and fallen asleep again between two ticks.
  const bool all_sleep = idle.sleeping == idle.started;
  const bool quiet = std::exchange(activity_.seen_wakes, wakes) == wakes && all_sleep;
  // The order: first lost work and stuck workers, because fibers wait for that; then the trimming, which may take long.
  if (calls.at_tick) calls.at_tick(runtime_);
  rescue();
  relieve_hogs();
  retry_starved();
  report_stuck_workers();
  activity_.quiet_ticks = quiet && lost_ticks_ == 0 ? activity_.quiet_ticks + 1 : 0;
  // Reads a file, so not while nothing happens.
  if (!quiet) runtime_.threads.check_quota(now_ns());
  if (!quiet) trimming_.left = 2;
  const std::int64_t now = now_ns();
  trim_stacks(now, all_sleep);
  idle_stacks.step(now);
  // A worker that was awake at the last tick may have fallen asleep only now, because ticks may be late. So the first
  // quiet tick counts as busy too.
  if (activity_.quiet_ticks <= 1) activity_.last_busy = now;
  if (!quiet) {
    activity_.ask_after = tuning::silence;
  } else if (calls.when_quiet && activity_.ask_after > 0 && now - activity_.last_busy >= activity_.ask_after) {
    activity_.ask_after = calls.when_quiet(runtime_) ? 0 : 4 * activity_.ask_after;
  }
}

// The first trim marks unused stacks, and the second returns the stacks that are still marked. While workers are awake
// both repeat.
void monitor::trim_stacks(std::int64_t now, bool all_sleep) noexcept {
  if (trimming_.left == 0 || now - trimming_.last < tuning::trim_interval) return;
  trimming_.last = now;
  if (all_sleep) --trimming_.left;
  stack_pool::trim_all();
}

// A worker that neither dispatched nor parked since the last tick runs a long fiber. It is asked to yield at its next
// chance. The fiber in its slot goes to the shared queue. For the rest, which busy workers take at their maintenance,
// another worker is woken. One is also woken for pushes that a worker has suppressed (wake_policy.hpp). If the fiber is
// in a system call, another thread takes the worker over.
void monitor::relieve_hogs() noexcept {
  for (std::size_t i = 0; i < runtime_.schedulers.size(); ++i) {
    scheduler& s = *runtime_.schedulers[i];
    if (s.has_suppressed_pushes()) runtime_.parker.notify();
    // A thief that leaves others' work alone dispatches nothing, but parks, and returns at once.
    const std::uint64_t steps = s.counters().dispatches.get() + s.counters().parks.get();
    watched& seen = watched_[i];
    if (std::exchange(seen.steps, steps) != steps || !s.activity.busy()) {
      seen.stuck_since.set(0);
      seen.reported = false;
      continue;
    }
    if (seen.stuck_since.get() == 0) seen.stuck_since.set(now_ns());
    s.relieve_call();
    s.ask(request::yield);
    if (runtime_.parker.limit() > 1) {
      job* const next = s.queues.has_slot() ? s.queues.steal_slot() : nullptr;
      if (next || s.may_have_work()) counts.workers_retaken.add();
      if (next) runtime_.inject(*next, priority::woken);
    }
    if (s.may_have_work()) runtime_.parker.notify();
  }
}

// After the relief, because a report may take some tenths of a second. One for each time that a worker is stuck.
void monitor::report_stuck_workers() noexcept {
  if (!calls.when_stuck) return;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    watched& seen = watched_[i];
    const std::int64_t time = now_ns() - seen.stuck_since.get();
    if (seen.stuck_since.get() == 0 || seen.reported || time < calls.stuck_after) continue;
    seen.reported = true;
    calls.when_stuck(*runtime_.schedulers[i], time);
  }
}

// Fibers that were refused a stack try again, because other fibers may have returned theirs. A tick takes a limited
// number, because each retry may be refused. A fiber that was asked to stop ends without a stack, as if cancelled at
// its first step, unless others wait for what its closure does.
void monitor::retry_starved() noexcept {
  if (!any_starved()) return;
  intrusive_queue<job> waiting, again;
  // They go back through the shared queue, as fresh fibers, and may come here again.
  const gate_guard of_these(runtime_.tasks->gate);
  starved_.take(tuning::retries_per_tick, waiting);
  while (job* const next = waiting.pop()) {
    task* const fresh = fiber::is_fiber(*next) ? static_cast<task*>(next) : nullptr;
    if (fresh && !fresh->stackless() && !fresh->must_begin() && fresh->agent().word.stop_requested()) {
      fresh->abandon();
    } else {
      again.push(*next);
    }
  }
  runtime_.inject(again);
}

// Helps where the protocol of the parker leaves something to chance, or has failed.
void monitor::rescue() noexcept {
  // Sockets are registered, but no worker watches them: the one that did now runs a fiber, and woke no other. A worker
  // in its start hook is about to watch them, so none is started then.
  const bool one_could = runtime_.threads.in_hooks() == 0 && runtime_.parker.could_poll();
  if ((runtime_.parker.nobody_polls() || one_could) && runtime_.loop->registrations() > 0) {
    counts.poller_handoffs.add();
    runtime_.parker.wake_one();
  }
  // The worker in its hook was started for this work, but its hook may take long. So another one is woken.
  if (runtime_.threads.in_hooks() > 0 && runtime_.any_work()) runtime_.parker.notify();
  // Check twice, because a publisher may be between its push and its notify. Hold the mutex for the second check: a
  // worker that has announced its sleep holds it until it has checked the queues once more.
  bool lost = work_is_lost();
  if (lost && lost_ticks_ > 0) {
    const std::lock_guard lock(runtime_.parker.mutex());
    lost = work_is_lost();
  }
  lost_ticks_ = lost ? lost_ticks_ + 1 : 0;
  if (lost_ticks_ < 2) return;
  // A correct protocol never gets here. The wake keeps the program running, and the count makes every test fail.
  counts.lost_wakeups.add();
  runtime_.parker.wake_one();
}

// Whether work is published while every worker sleeps and none is about to be woken: a lost wake-up. Threads that are
// publishing are counted after the queues are read, so that the publisher of any work seen is seen too.
bool monitor::work_is_lost() const noexcept {
  const idle_counts idle = runtime_.parker.counts();
  return idle.sleeping == idle.started && idle.started > 0 && idle.searching == 0 && runtime_.any_work() &&
         runtime_.tasks->gate.idle();
}

}  // namespace ulexite::detail
