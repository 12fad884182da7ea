#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/threads/cpus.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace ulexite::detail {

runtime_state::runtime_state(runtime_options given)
    : options(std::move(given)),
      threads(*this, options),
      stacks(stack_pool::of_size(options.stack_size)),
      loop(std::make_shared<event_loop>(threads.most())),
      tasks(task_pool::make(*this, *loop, options.on_unhandled_exception)),
      blocking(std::make_shared<blocking_pool>(
          *this, options.blocking_threads, options.blocking_keep_alive,
          blocking_pool::thread_hooks{options.on_blocking_thread_start, options.on_blocking_thread_stop})),
      parker(*this, static_cast<std::uint32_t>(threads.first_limit())),
      fibers(options.max_fibers),
      monitor(*this, threads.most()) {
  install_death_reports();
  for (std::size_t i = 0; i < threads.most(); ++i) schedulers.push_back(std::make_unique<scheduler>(*this, i));
  world.stands.resize(threads.most());
}

// ---- publishing ----

void runtime_state::inject(job& runnable, turn which) noexcept {
  intrusive_queue<job> one;
  one.push(runnable);
  inject(one, which);
}

void runtime_state::inject(intrusive_queue<job>& runnables, turn which) noexcept {
  if (runnables.empty()) return;
  static_cast<void>(tasks->gate.enter());
  injected.push(runnables, which);
  parker.notify();
  tasks->gate.leave();
}

void runtime_state::resume_from_outside(task& fiber) noexcept {
  outside_gate& gate = task_pool::of(&fiber).gate;
  if (gate.enter()) fiber.home().inject(fiber, turn::woken);
  gate.leave();
}

// ---- counting ----

void runtime_state::count_spawn(scheduler* here) {
  if (fibers.limited()) fibers.enter_limited();
  if (here) {
    here->counters().spawned.add();
  } else {
    fibers.enter_outside();
  }
}

// No worker that falls asleep later would wake the thread that waits for the end outside.
void runtime_state::count_end(scheduler* here) noexcept {
  if (fibers.limited()) fibers.leave_limited();
  if (here) {
    here->counters().ended.add();
    return;
  }
  fibers.leave_outside();
  const std::lock_guard lock(parker.mutex());
  monitor.wake_quiet_waiter();
}

// Exact while every worker sleeps: their counters were written before they took the parker's mutex.
std::size_t runtime_state::live() const noexcept {
  std::uint64_t ended = fibers.left_outside();
  for (const auto& s : schedulers) ended += s->counters().ended.get();
  std::uint64_t spawned = fibers.entered_outside();  // after the ends, population.hpp B
  for (const auto& s : schedulers) spawned += s->counters().spawned.get();
  return spawned > ended ? spawned - ended : 0;
}

// ---- stopping ----

// A fiber spawned from now on is asked to stop at its spawn (publish), the others here, whatever they are at.
void runtime_state::request_stop() noexcept {
  fibers.set_stop_requested();
  std_atomics::heavy_fence();  // population.hpp A
  tasks->for_each([](agent& agent) { agent.word.request_stop(); });
  run_stop_callbacks(fibers.stop_source());
  std_atomics::heavy_fence();  // wait_word.hpp C
  intrusive_queue<job> cancelled;
  tasks->for_each([&](agent& agent) {
    if (agent.word.cancel()) cancelled.push(agent.fiber());
  });
  inject(cancelled, turn::woken);
}

std::size_t runtime_state::stop_workers() noexcept {
  monitor.end();
  threads.end_all();
  tasks->gate.shut();  // what came late has no use for a worker, but still looks for one
  blocking->retire();
  for (const auto& s : schedulers) s->give_stacks_back();
  stack_pool::trim_all(true);  // there may be no monitor to do it later
  return live();
}

// What others may refer to stays as it is: an abandoned fiber's block and stack are never used again. So a wait node
// that stands there in a queue is found dead by the queue's next user, and what else stands there can still be used.
std::size_t runtime_state::abandon_all() noexcept {
  std::vector<task*> left, branches;
  tasks->for_each([&](agent& agent) {
    if (!agent.in_use) return;
    if (agent.fiber().is_branch()) branches.push_back(&agent.fiber());
    if (agent.fiber().state.phase() == fiber_phase::dead) return;
    agent.word.abandon();  // nothing that the others give up may resume it
    left.push_back(&agent.fiber());
  });
  for (task* const task : left) task->abandon();
  for (task* const task : branches) task->release();  // the frames of their forks no longer do
  fibers.leave_outside(live());                       // closures whose making was abandoned
  return left.size();
}

std::size_t runtime_state::threads_if_quiet() noexcept {
  const blocking_pool::counts calls = blocking->now();
  const std::lock_guard lock(parker.mutex());
  const idle_counts idle = parker.counts();
  const bool quiet = idle.sleeping == idle.started && !any_work() && !monitor.any_starved() && tasks->gate.idle();
  if (!quiet || calls.idle != calls.threads || calls.queued != 0) return 0;
  return idle.started + threads.benched() + calls.threads + (monitor.has_other_thread() ? 2 : 1);
}

// ---- the parker's host ----

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

void runtime_state::wake_loop() noexcept { loop->wake(); }

// The parker's mutex is held.
void runtime_state::surplus_changed(bool some) noexcept {
  if (some) {
    attention.call_for(attention::surplus);
  } else {
    attention.call_off(attention::surplus);
  }
}

// ---- reports ----

runtime_metrics runtime_state::metrics() const noexcept {
  runtime_metrics m;
  const idle_counts idle = parker.counts();
  m.workers = idle.started;
  m.workers_sleeping = idle.sleeping;
  m.workers_searching = idle.searching;
  m.queued_outside = injected.size();
  const blocking_pool::counts calls = blocking->now();
  m.blocking_threads = calls.threads;
  m.blocking_queued = calls.queued;
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
  }
  for (const auto& s : schedulers) m.fibers_spawned += s->counters().spawned.get();
  m.fibers_live = m.fibers_spawned > m.fibers_ended ? m.fibers_spawned - m.fibers_ended : 0;
  const auto& seen = monitor.counts;
  m.wakes = seen.wakes.load(std::memory_order_relaxed);                  // counter
  m.hogs_relieved = seen.hogs_relieved.load(std::memory_order_relaxed);  // counter
  m.polls_rescued = seen.polls_rescued.load(std::memory_order_relaxed);  // counter
  m.rescued_wakeups = seen.rescued.load(std::memory_order_relaxed);      // counter
  m.thread_starts_refused = threads.refused();
  return m;
}

}  // namespace ulexite::detail
