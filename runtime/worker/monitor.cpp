// The monitor: what no worker can see to itself, because it is stuck in a long fiber. The thread that waits in run(),
// or for the runtime's end, does it while it waits; without one, a thread of its own. It ticks only while some worker
// is awake or wakes up now and then, and sleeps after two ticks in which none did.

#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <utility>

namespace ulexite::detail {
// While it lives, the calling thread is the monitor, unless there is one already.
class runtime_state::monitor_turn {
 public:
  explicit monitor_turn(runtime_state& home) noexcept
      : home_(home), mine_(!home.monitored_.exchange(true, std::memory_order_acquire)) {}  // pairs with ~monitor_turn
  ~monitor_turn() {
    if (mine_) home_.monitored_.store(false, std::memory_order_release);  // pairs with monitor_turn
  }
  monitor_turn(const monitor_turn&) = delete;
  monitor_turn& operator=(const monitor_turn&) = delete;

  [[nodiscard]] bool mine() const noexcept { return mine_; }

 private:
  runtime_state& home_;
  const bool mine_;
};

void runtime_state::watch_until_done(task& task) noexcept {
  if (this_agent().kind == agent_kind::thread) {
    const monitor_turn turn(*this);
    if (turn.mine()) {
      auto& self = static_cast<thread_agent&>(this_agent());
      while (!task.join(next_tick(self))) tick();
      forget_monitor(self);
    } else {
      task.join();
    }
  } else {  // a fiber of another runtime, which may change its thread
    ensure_monitor();
    task.join();
  }
  if (live() > 0) ensure_monitor();
}

void runtime_state::watch_until_quiet() noexcept {
  const monitor_turn turn(*this);
  thread_agent self;  // really blocks the caller, a fiber of another runtime too
  for (;;) {
    {
      const std::lock_guard lock(parker.mutex());
      const idle_counts idle = parker.counts();
      const bool quiet = idle.sleeping == idle.started && live() == 0 && !any_work() && starved.empty();
      quiet_waiter_ = quiet ? nullptr : &self;
      if (quiet) break;
    }
    self.block(turn.mine() ? next_tick(self) : no_deadline);
    if (turn.mine()) tick();
  }
  if (turn.mine()) forget_monitor(self);
}

void runtime_state::ensure_monitor() noexcept {
  if (monitored_.load(std::memory_order_relaxed)) return;  // hint
  const std::lock_guard lock(parker.mutex());
  if (monitor_stop_) return;
  if (monitor_thread_.joinable()) {
    if (monitor_agent_) monitor_agent_->poke();  // it may take its turn now
    return;
  }
  try {
    monitor_thread_ = std::thread([this] { monitor_main(); });
  } catch (const std::exception&) {  // std::system_error, std::bad_alloc
    // Done without: the workers see to themselves as long as no fiber keeps one for long.
  }
}

void runtime_state::monitor_main() noexcept {
  auto& self = static_cast<thread_agent&>(this_agent());
  const auto stopped = [&] {
    const std::lock_guard lock(parker.mutex());
    monitor_agent_ = monitor_stop_ ? nullptr : &self;
    return monitor_stop_;
  };
  while (!stopped()) {
    const monitor_turn turn(*this);
    self.block(turn.mine() ? next_tick(self) : now_ns() + tuning::trim_interval);
    if (turn.mine()) tick();
  }
  forget_monitor(self);
}

// The thread that was the monitor goes its way, and no late poke must end a wait of its own.
void runtime_state::forget_monitor(thread_agent& self) noexcept {
  const std::lock_guard lock(parker.mutex());
  if (monitor_asleep_ == &self) monitor_asleep_ = nullptr;
  self.forget_poke();
}

// When the next tick is due. After some quiet ticks only the stacks remain to be trimmed, and then nothing: the next
// worker that wakes up wakes the monitor.
std::int64_t runtime_state::next_tick(thread_agent& self) noexcept {
  if (quiet_ticks_ < tuning::quiet_ticks_before_sleep) return now_ns() + tuning::tick_interval;
  const std::lock_guard lock(parker.mutex());
  const idle_counts idle = parker.counts();
  if (idle.sleeping != idle.started || !starved.empty() ||
      wakes_.load(std::memory_order_relaxed) != seen_wakes_)  // counter
    return now_ns() + tuning::tick_interval;
  monitor_asleep_ = &self;
  if (when_quiet && !asked_) return last_busy_ + tuning::silence;
  return trims_left_ > 0 ? now_ns() + tuning::trim_interval : no_deadline;
}

void runtime_state::tick() noexcept {
  if (wants(attention::halt)) return;  // it may run code of fibers that never started
  const idle_counts idle = parker.counts();
  const std::uint64_t wakes = wakes_.load(std::memory_order_relaxed);  // counter
  const bool all_sleep = idle.sleeping == idle.started;
  const bool quiet = std::exchange(seen_wakes_, wakes) == wakes && all_sleep;
  rescue();
  relieve_hogs();
  retry_starved();
  quiet_ticks_ = quiet && lost_ticks_ == 0 ? quiet_ticks_ + 1 : 0;
  if (!quiet) look_at_quota(now_ns());
  if (!quiet) trims_left_ = 2;  // the first marks what is unused, the second gives it back
  const std::int64_t now = now_ns();
  if (trims_left_ > 0 && now - last_trim_ >= tuning::trim_interval) {
    last_trim_ = now;
    if (all_sleep) --trims_left_;
    stack_pool::trim_all();
  }
  if (!quiet) {
    last_busy_ = now;
    asked_ = false;
  } else if (when_quiet && !asked_ && now - last_busy_ >= tuning::silence) {
    asked_ = true;
    when_quiet(*this);
  }
}

// A fiber that a worker woke waits behind a fiber that does not let go: it goes where others can take it.
void runtime_state::relieve_hogs() noexcept {
  for (std::size_t i = 0; i < workers; ++i) {
    scheduler& s = *schedulers[i];
    const std::uint64_t dispatches = s.counters().dispatches.get();
    if (std::exchange(seen_dispatches_[i], dispatches) != dispatches || !s.activity().busy()) {
      s.activity().set_unswitched_since(0);
      continue;
    }
    if (s.activity().unswitched_since() == 0) s.activity().set_unswitched_since(now_ns());
    s.ask(request::yield);
    job* const waiting = workers > 1 && s.has_slot() ? s.raid_slot() : nullptr;
    if (waiting) {
      hogs_relieved_.fetch_add(1, std::memory_order_relaxed);  // counter
      inject(*waiting, turn::woken);
    } else if (s.may_have_work()) {
      parker.notify();
    }
  }
}

// What was refused a stack tries again: others may have given theirs back. A fiber that is asked to stop meanwhile ends
// without one, as if cancelled at its first step.
void runtime_state::retry_starved() noexcept {
  intrusive_queue<job> waiting, again;
  starved.take(tuning::retries_per_tick, waiting);
  while (job* const next = waiting.pop()) {
    task* const fresh = fiber::is_fiber(*next) ? static_cast<task*>(next) : nullptr;
    if (fresh && fresh->agent().word.stop_requested()) {
      fresh->abandon();
    } else {
      again.push(*next);
    }
  }
  inject(again);
}

void runtime_state::rescue() noexcept {
  if ((parker.nobody_polls() || parker.unstarted_could_poll()) && loop->registrations() > 0) {
    polls_rescued_.fetch_add(1, std::memory_order_relaxed);  // counter
    parker.wake_one();
  }
  if (in_hooks_.load(std::memory_order_relaxed) > 0 && any_work()) parker.notify();  // hint
  // Work that lies there while every worker sleeps and nobody is about to wake one: a lost wake-up. Two looks, for the
  // one who published it may be between the two steps of that. And the second with the mutex, for so may be a worker
  // that has announced its sleep: it holds that until it has looked for work once more. Outside pushers are looked for
  // after the work, so that whoever brought what was seen is seen too.
  const auto work_is_lost = [this] {
    const idle_counts idle = parker.counts();
    return idle.sleeping == idle.started && idle.started > 0 && idle.searching == 0 && any_work() && tasks.gate.idle();
  };
  bool lost = work_is_lost();
  if (lost && lost_ticks_ > 0) {
    const std::lock_guard lock(parker.mutex());
    lost = work_is_lost();
  }
  lost_ticks_ = lost ? lost_ticks_ + 1 : 0;
  if (lost_ticks_ < 2) return;
  rescued_.fetch_add(1, std::memory_order_relaxed);  // counter
  parker.wake_one();
}

}  // namespace ulexite::detail
