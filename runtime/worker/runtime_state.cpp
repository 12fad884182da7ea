// The parts of a runtime's state that concern all workers: publishing from outside, counting fibers, stopping, and the
// sums of the workers' counters.
//
// The end of a runtime (runtime::shutdown):
//   1  Calls from outside are refused from now on. With shutdown_mode::cancel all fibers are asked to stop.
//   2  Unless the mode is stop: the caller waits until no fiber is left and all workers sleep (wait_until_quiet).
//   3  Dumps by a signal and the file of a trace end.
//   4  The workers end at their next safepoint, and the monitor after its tick; the caller joins them (end_all).
//   5  The gate is shut: from now on nothing is published, because no worker would take it.
//   6  The threads of blocking calls end, because no worker takes their results.
//   7  The stacks that no fiber uses go back to the system.
//   8  The fibers that are left are abandoned: those that have begun keep their stacks for ever.

#include <ulexite/base/controller.hpp>
#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/threads/cpus.hpp>
#include <ulexite/runtime/wait/channel_head.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/stop_callbacks.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace ulexite::detail {

namespace {

std::chrono::milliseconds trim_after(const runtime_options& options) {
  if (options.trim_stacks_after.count() < 0)
    throw std::invalid_argument(
        "runtime_options::trim_stacks_after is negative: " + std::to_string(options.trim_stacks_after.count()) + " ms");
  return options.trim_stacks_after;
}

}  // namespace

// No thread is started here: ensure_worker starts the first when there is work for it. All schedulers are made now, so
// that thieves and the monitor can go through them without a lock.
runtime_state::runtime_state(runtime_options given)
    : options(std::move(given)),
      threads(*this, options),
      stacks(stack_pool::of_size(options.stack_size ? options.stack_size : runtime_options().stack_size)),
      loop(std::make_shared<event_loop>(threads.most())),
      tasks(task_pool::make(*this, *loop, options.on_unhandled_exception)),
      blocking(std::make_shared<blocking_pool>(
          *this, options.blocking_threads, options.blocking_keep_alive,
          blocking_pool::thread_hooks{options.on_blocking_thread_start, options.on_blocking_thread_stop})),
      parker(*this, static_cast<std::uint32_t>(threads.first_limit())),
      fibers(options.max_fibers),
      monitor(*this, threads.most(), trim_after(options)) {
  // Before the first fiber, because it takes the process's handlers for faults and std::terminate.
  install_death_reports();
  for (std::size_t i = 0; i < threads.most(); ++i) schedulers.push_back(std::make_unique<scheduler>(*this, i));
  world.halted.resize(threads.most());
}

// ---- publishing ----

void runtime_state::inject(job& runnable, priority which) noexcept {
  intrusive_queue<job> one;
  one.push(runnable);
  inject(one, which);
}

// The gate shows that a publisher is between its push and its notify. It is read by the check for lost work, and by the
// runtime's end.
void runtime_state::inject(intrusive_queue<job>& runnables, priority which) noexcept {
  if (runnables.empty()) return;
  const gate_guard of_these(tasks->gate);
  injected.push(runnables, which);
  parker.notify();
}

// The fiber's block, and with it the pool and its gate, outlive the runtime. If the gate is shut, the fiber was
// abandoned, and there is nothing to do.
void runtime_state::resume_from_outside(task& fiber) noexcept {
  shutdown_gate& gate = task_pool::of(&fiber).gate;
  if (gate.enter()) {
    if (fiber.runtime().trace.is_recording()) stamp_runnable(fiber);
    fiber.runtime().inject(fiber, priority::woken);
  }
  gate.leave();
}

// ---- counting ----

// Each worker counts for itself, so no word is written by all. Only a limit needs the exact number at any time. A spawn
// is counted before it is published, so that no end is seen without it. After the runtime's end no worker would take
// the fiber, so the spawn is refused.
void runtime_state::count_spawn(scheduler* here) {
  if (!here && is_ending() && runtime_of_thread() != this)
    throw usage_error("a fiber was spawned after the shutdown of its runtime");
  if (fibers.limited()) fibers.enter_limited();
  if (here) {
    here->counters().spawned.add();
  } else {
    fibers.enter_outside();
  }
}

// An end outside of all workers may be the last one. No worker falls asleep after it, so the thread that waits for
// quiet is woken here.
void runtime_state::count_end(scheduler* here) noexcept {
  if (fibers.limited()) fibers.leave_limited();
  if (here) {
    here->counters().ended.add_after_others();
    return;
  }
  fibers.leave_outside();
  const std::lock_guard lock(parker.mutex());
  on_all_asleep();
}

// Exact while every worker sleeps: their counters were written before they took the parker's mutex.
std::size_t runtime_state::live() const noexcept {
  // Ends first: with the spawns first, a fiber that is spawned and ends in between would count as ended only.
  std::uint64_t ended = fibers.left_outside();
  for (const auto& s : schedulers) ended += s->counters().ended.get();
  std::uint64_t spawned = fibers.entered_outside();  // after the ends, fiber_counts.hpp B
  for (const auto& s : schedulers) spawned += s->counters().spawned.get();
  return spawned > ended ? spawned - ended : 0;
}

// ---- stopping ----

// A fiber spawned from now on is asked to stop at its spawn (inherit), the others here, in any state. All are
// asked before the first is woken, because a woken fiber may start others. A block that is not in use is an agent too,
// so every block is asked. The fibers with a claimed wait are published together. A fiber is counted before its spawner
// reads the request. So if no fiber is counted after the fence, there is none to ask. Then this saves the walks over
// the memory of an earlier burst of fibers.
void runtime_state::request_stop() noexcept {
  fibers.set_stop_requested();
  std_atomics::heavy_fence();  // fiber_counts.hpp A
  const bool any = live() != 0;
  if (any) tasks->for_each([](agent& agent) { agent.word.request_stop(); });
  run_stop_callbacks(fibers.stop_source());
  if (!any) return;
  std_atomics::heavy_fence();  // wait_word.hpp C
  intrusive_queue<job> cancelled;
  tasks->for_each([&](agent& agent) { cancel_wait(agent, cancelled); });
  inject(cancelled, priority::woken);
}

// Steps 4 to 8 of the end.
std::size_t runtime_state::end_workers() noexcept {
  threads.end_all();
  tasks->gate.shut();  // a late publisher still notifies, though no worker takes its item
  blocking->shut();
  for (const auto& s : schedulers) s->give_stacks_back();
  stack_pool::trim_all(true);  // no monitor will do it later
  return abandon_all();
}

// An abandoned fiber's block and stack are never used again, because other threads may refer to their objects. A wait
// node there is found dead by the next user of its queue. All waits are marked first, so that no destructor of one
// abandoned fiber resumes another. A branch has the frame of its fork as owner, which no longer gives it up: that is
// done here.
std::size_t runtime_state::abandon_all() noexcept {
  if (live() == 0) return 0;
  std::vector<task*> left, branches;
  tasks->for_each([&](agent& agent) {
    if (!agent.in_use) return;
    if (agent.fiber().is_branch()) branches.push_back(&agent.fiber());
    if (agent.fiber().state.phase() == fiber_phase::dead) return;
    agent.word.abandon();  // so that a release by the others does not resume it
    left.push_back(&agent.fiber());
  });
  for (task* const task : left) task->abandon();
  for (task* const task : branches) task->release();  // the frames of their forks no longer do
  fibers.leave_outside(live());                       // fibers counted by a spawner that did not finish
  return left.size();
}

// Whether all workers sleep, and nothing is published. The parker's mutex is held, so that no worker falls asleep or
// wakes up during the check. In the order in which a runnable moves: a publisher is in the gate before it takes one,
// and until its push.
bool runtime_state::is_quiet() const noexcept {
  const idle_counts idle = parker.counts();
  return idle.sleeping == idle.started && !monitor.any_starved() && tasks->gate.idle() && !any_work();
}

std::size_t runtime_state::threads_if_quiet() noexcept {
  const blocking_pool::counts calls = blocking->now();
  const std::lock_guard lock(parker.mutex());
  // A thread of the pool that makes a call may end a wait, so nothing is quiet then. A thread that was lent to a worker
  // counts as the worker.
  const std::size_t callers = calls.threads - calls.lent;
  if (!is_quiet() || calls.idle != callers || calls.queued != 0) return 0;
  return parker.counts().started + callers + 1;  // the monitor
}

// The last worker that falls asleep wakes this thread, because quiet_waiter_ was set under the mutex. What is being
// published is in no queue, and its publisher does not wake this thread. So without fibers it looks again soon.
void runtime_state::wait_until_quiet() noexcept {
  thread_agent self;  // really blocks the caller, a fiber of another runtime too
  for (;;) {
    bool none_lives;
    {
      const std::lock_guard lock(parker.mutex());
      none_lives = live() == 0;
      quiet_waiter_ = none_lives && is_quiet() ? nullptr : &self;
      if (!quiet_waiter_) return;
    }
    self.block(none_lives ? now_ns() + tuning::tick_interval : no_deadline);
  }
}

// ---- the parker's host ----

// Whether any queue may hold work. The parker calls it as the last check before a sleep. It sees each push that was
// before the check. It omits the slots, because their fibers run next on workers that are awake.
bool runtime_state::any_work() const noexcept {
  if (!injected.empty()) return true;
  for (const auto& s : schedulers)
    if (s->may_have_work()) return true;
  return false;
}

// A hint.
std::size_t runtime_state::queued() const noexcept {
  std::size_t sum = injected.size();
  for (const auto& s : schedulers) sum += s->queued();
  return sum;
}

// Ends the present or the next sleep in the event loop (event_loop.cpp A).
void runtime_state::wake_loop() noexcept { loop->wake(); }

// ---- reports ----

// Each number is true at some moment of the call, not all at the same. The workers' ends are read before their spawns,
// so that the number of living fibers is too high rather than too low.
runtime_metrics runtime_state::metrics() const noexcept {
  runtime_metrics m;
  const idle_counts idle = parker.counts();
  // Those that sleep above the limit do not count.
  m.workers = std::max(idle.awake(), std::min(idle.started, parker.limit()));
  m.workers_sleeping = m.workers - idle.awake();
  m.workers_searching = idle.searching;
  m.queued_outside = injected.size();
  const blocking_pool::counts calls = blocking->now();
  m.blocking_threads = calls.threads - std::min(calls.lent, calls.threads);  // a lent thread may be yet to start
  m.blocking_queued = calls.queued;
  m.channel_bytes = large_channel_bytes.load(std::memory_order_relaxed);  // counter
  m.fibers_ended = fibers.left_outside();
  m.fibers_spawned = fibers.entered_outside();
  for (const auto& s : schedulers) {
    const auto& c = s->counters();
    m.fibers_ended += c.ended.get();
    m.dispatches += c.dispatches.get();
    m.starts_in_place += c.starts_in_place.get();
    m.steals += c.steals.get();
    m.overflows += c.overflows.get();
    m.parks += c.parks.get();
    m.polls += c.polls.get();
    m.events += c.events.get();
    m.stacks_refused += c.stacks_refused.get();
    m.accepts_refused += c.accepts_refused.get();
  }
  for (const auto& s : schedulers) m.fibers_spawned += s->counters().spawned.get();
  m.fibers_live = m.fibers_spawned > m.fibers_ended ? m.fibers_spawned - m.fibers_ended : 0;
  const auto& seen = monitor.counts;
  m.wakes = seen.wakes.get();
  m.workers_retaken = seen.workers_retaken.get();
  m.poller_handoffs = seen.poller_handoffs.get();
  m.stack_bytes_trimmed = monitor.idle_stacks.bytes();
  m.lost_wakeups = seen.lost_wakeups.get();
  m.thread_starts_refused = threads.refused();
  return m;
}

const runtime_state* runtime_of_caller() noexcept {
  const runtime_state* const worker_of = runtime_of_thread();
  return worker_of ? worker_of : spawn_runtime_of_thread();
}

bool is_on_thread_within(const runtime_state& rt) noexcept {
  const runtime_state* const here = runtime_of_caller();
  return here && (here == &rt || (rt.handle.number != 0 && here->handle.around == rt.handle.number));
}

}  // namespace ulexite::detail
