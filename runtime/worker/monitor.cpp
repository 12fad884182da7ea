// The monitor's two halves: which thread has the lease, and the work of a tick. Only the thread with the lease calls
// tick(), so its own members need no lock.

#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace ulexite::detail {

// While it lives, the calling thread is the monitor, unless another thread is.
class monitor::lease {
 public:
  explicit lease(monitor& of) noexcept : of_(of), mine_(!of.taken_.exchange(true, std::memory_order_acquire)) {}  // A
  ~lease() {
    if (mine_) of_.taken_.store(false, std::memory_order_release);  // A
  }
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;

  [[nodiscard]] bool mine() const noexcept { return mine_; }

 private:
  monitor& of_;
  const bool mine_;
};

// ---- which thread is the monitor ----

// The caller is a plain thread that waits in run(): it joins the task with the time of the next tick as its limit. If
// another thread is the monitor, it only joins.
void monitor::watch_until_done(task& task) noexcept {
  if (this_agent().kind == agent_kind::thread) {
    const lease lease(*this);
    if (lease.mine()) {
      auto& self = static_cast<thread_agent&>(this_agent());
      self.is_listed = false;  // it waits until the next tick, again and again
      while (!task.join(next_tick(self))) tick();
      self.is_listed = true;
      forget(self);
    } else {
      task.join();
    }
  } else {  // a fiber of another runtime, which may change its thread
    ensure();
    task.join();
  }
}

// Quiet: all workers sleep, no fiber lives, and nothing is published. Checked with the mutex held, under which workers
// fall asleep. The last of them wakes this thread, because quiet_waiter_ was set under it too. What is being published
// is in no queue, and its publisher does not wake this thread. So this thread looks again soon.
void monitor::watch_until_quiet() noexcept {
  const lease lease(*this);
  thread_agent self;  // really blocks the caller, a fiber of another runtime too
  for (;;) {
    std::int64_t next_look = no_deadline;
    {
      const std::lock_guard lock(runtime_.parker.mutex());
      const idle_counts idle = runtime_.parker.counts();
      // In the order in which a runnable moves: a publisher is in the gate before it takes one, and until its push.
      bool quiet = idle.sleeping == idle.started && runtime_.live() == 0 && !any_starved();
      const bool gate_idle = runtime_.tasks->gate.idle();
      quiet = quiet && !runtime_.any_work();
      if (quiet && !gate_idle) next_look = now_ns() + tuning::tick_interval;
      quiet = quiet && gate_idle;
      quiet_waiter_ = quiet ? nullptr : &self;
      if (quiet) break;
    }
    self.block(lease.mine() ? std::min(next_tick(self), next_look) : next_look);
    if (lease.mine()) tick();
  }
  if (lease.mine()) forget(self);
}

// A thread that exists may wait, because another thread had the lease: it is woken to take it over.
void monitor::ensure() noexcept {
  if (taken_.load(std::memory_order_relaxed)) return;  // hint
  const std::lock_guard lock(runtime_.parker.mutex());
  if (ending_) return;
  if (thread_.joinable()) {
    if (agent_) agent_->poke();  // it may take the lease now
    return;
  }
  try {
    thread_ = std::thread([this] { thread_main(); });
  } catch (const std::exception&) {  // std::system_error, std::bad_alloc
    // No monitor: the workers need none as long as no fiber runs for long.
  }
}

// The thread is joined without the mutex, because it takes the mutex before it ends.
void monitor::end() noexcept {
  std::thread own;
  {
    const std::lock_guard lock(runtime_.parker.mutex());
    ending_ = true;
    own.swap(thread_);
    if (agent_) agent_->poke();
  }
  if (own.joinable()) own.join();
}

// The monitor's own thread. While another thread has the lease it checks only now and then. So it takes over a lease
// that ends, at the latest after that time.
void monitor::thread_main() noexcept {
  auto& self = static_cast<thread_agent&>(this_agent());
  // Under the mutex, so that ensure() and end() find the agent of this thread, or the thread sees that it must end.
  const auto ended = [&] {
    const std::lock_guard lock(runtime_.parker.mutex());
    agent_ = ending_ ? nullptr : &self;
    return ending_;
  };
  while (!ended()) {
    const lease lease(*this);
    self.block(lease.mine() ? next_tick(self) : now_ns() + tuning::trim_interval);
    if (lease.mine()) tick();
  }
  forget(self);
}

// The thread is no longer the monitor, and no late poke may end a wait of its own.
void monitor::forget(thread_agent& self) noexcept {
  const std::lock_guard lock(runtime_.parker.mutex());
  if (asleep_ == &self) asleep_ = nullptr;
  self.forget_poke();
}

// For the count of threads that could help: the calling monitor is not one.
bool monitor::has_other_thread() const noexcept {
  return thread_.joinable() && thread_.get_id() != std::this_thread::get_id();
}

// A monitor that has stopped ticking sleeps until this. Only the first worker that wakes up pokes it.
void monitor::wake() noexcept {
  if (asleep_) std::exchange(asleep_, nullptr)->poke();
}

void monitor::on_wake() noexcept {
  counts.wakes.fetch_add(1, std::memory_order_relaxed);  // counter
  wake();
}

// The waiter checks everything again, so a poke too many does no harm.
void monitor::wake_quiet_waiter() noexcept {
  if (quiet_waiter_) quiet_waiter_->poke();
}

// ---- its work ----

// The time of the next tick. In a stopped world a tick does nothing, and its work stays due. After some quiet
// ticks only the stacks remain to be trimmed, and then nothing: the next worker that wakes up wakes the monitor. The
// wakes are compared with the mutex held, and on_wake runs with it held. So a worker that wakes up later finds
// asleep_ set.
std::int64_t monitor::next_tick(thread_agent& self) noexcept {
  if (activity_.quiet_ticks < tuning::quiet_ticks_before_sleep || runtime_.safepoint.requested(safepoint_request::halt))
    return now_ns() + tuning::tick_interval;
  const std::lock_guard lock(runtime_.parker.mutex());
  const idle_counts idle = runtime_.parker.counts();
  if (idle.sleeping != idle.started || any_starved() ||
      counts.wakes.load(std::memory_order_relaxed) != activity_.seen_wakes)  // counter
    return now_ns() + tuning::tick_interval;
  asleep_ = &self;
  const std::int64_t now = now_ns();
  const bool asks = calls_.when_quiet && activity_.ask_after > 0;
  const std::int64_t asks_at = asks ? activity_.last_busy + activity_.ask_after : no_deadline;
  const std::int64_t trims = trimming_.left > 0 ? now + tuning::trim_interval : no_deadline;
  return std::min({asks_at, trims, std::max(now + tuning::tick_interval, idle_stacks.next_step(activity_.last_busy))});
}

// The rescue comes first, because it may wake workers that then see to the rest. A tick is quiet if no worker woke up
// since the last one and all sleep. When enough time was quiet, the check for deadlocks is called. It is called again
// after four times that time, and so on, because a thread outside may have ended meanwhile.
void monitor::tick() noexcept {
  if (runtime_.safepoint.requested(safepoint_request::halt)) return;  // it may run code of fibers that never started
  const idle_counts idle = runtime_.parker.counts();
  const std::uint64_t wakes = counts.wakes.load(std::memory_order_relaxed);  // counter
  // A quiet tick needs both, because a worker may have woken and fallen asleep again between two ticks.
  const bool all_sleep = idle.sleeping == idle.started;
  const bool quiet = std::exchange(activity_.seen_wakes, wakes) == wakes && all_sleep;
  // The order: first lost work and stuck workers, because fibers wait for that; then the trimming, which may take long.
  if (calls_.at_tick) calls_.at_tick(runtime_);
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
  } else if (calls_.when_quiet && activity_.ask_after > 0 && now - activity_.last_busy >= activity_.ask_after) {
    activity_.ask_after = calls_.when_quiet(runtime_) ? 0 : 4 * activity_.ask_after;
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
// chance. The fiber in its slot, and half of each queue, go to the shared queue, because the other workers may be too
// busy to steal. For its branches another worker is woken. One is also woken for pushes that a worker has suppressed
// (wake_policy.hpp). If the fiber is in a system call, another thread takes the worker over.
void monitor::relieve_hogs() noexcept {
  for (std::size_t i = 0; i < runtime_.schedulers.size(); ++i) {
    scheduler& s = *runtime_.schedulers[i];
    if (s.has_suppressed_pushes()) runtime_.parker.notify();
    // A thief that leaves others' work alone dispatches nothing, but parks, and returns at once.
    const std::uint64_t steps = s.counters().dispatches.get() + s.counters().parks.get();
    if (std::exchange(seen_steps_[i], steps) != steps || !s.activity().busy()) {
      s.activity().set_unswitched_since(0);
      continue;
    }
    if (s.activity().unswitched_since() == 0) s.activity().set_unswitched_since(now_ns());
    s.relieve_call();
    s.ask(request::yield);
    intrusive_queue<job> woken, others;
    const gate_guard of_these(runtime_.tasks->gate);  // jobs among them are in no count, and in no queue for a moment
    if (runtime_.parker.limit() > 1) s.take_half(woken, others);
    if (!woken.empty() || !others.empty()) counts.hogs_relieved.fetch_add(1, std::memory_order_relaxed);  // counter
    if (!woken.empty()) runtime_.inject(woken, priority::woken);
    if (!others.empty()) runtime_.inject(others);
    if (s.may_have_work()) runtime_.parker.notify();
  }
}

// After the relief, because a report may take some tenths of a second. One for each time that a worker is stuck.
void monitor::report_stuck_workers() noexcept {
  if (!calls_.when_stuck) return;
  for (const auto& each : runtime_.schedulers) {
    worker_activity& seen = each->activity();
    const std::int64_t since = seen.unswitched_since();
    const std::int64_t time = now_ns() - since;
    if (since == 0 || seen.reported_since == since || time < calls_.stuck_after) continue;
    // The start of the stuck time identifies it, so each is reported once.
    seen.reported_since = since;
    calls_.when_stuck(*each, time);
  }
}

// Fibers that were refused a stack try again, because other fibers may have returned theirs. A tick takes a limited
// number, because each retry may be refused. A fiber that was asked to stop ends without a stack, as if cancelled at
// its first step.
void monitor::retry_starved() noexcept {
  if (!any_starved()) return;
  intrusive_queue<job> waiting, again;
  // They go back through the shared queue, as fresh fibers, and may come here again.
  const gate_guard of_these(runtime_.tasks->gate);
  starved_.take(tuning::retries_per_tick, waiting);
  while (job* const next = waiting.pop()) {
    task* const fresh = fiber::is_fiber(*next) ? static_cast<task*>(next) : nullptr;
    if (fresh && !fresh->stackless() && fresh->agent().word.stop_requested()) {
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
  const bool start_one = runtime_.threads.in_hooks() == 0 && runtime_.parker.unstarted_could_poll();
  if ((runtime_.parker.nobody_polls() || start_one) && runtime_.loop->registrations() > 0) {
    counts.polls_rescued.fetch_add(1, std::memory_order_relaxed);  // counter
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
  counts.rescued.fetch_add(1, std::memory_order_relaxed);  // counter
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
