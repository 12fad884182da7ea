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
      workers(std::max(worker_limit(options.threads), options.max_threads)),
      crowded(workers > processors()),
      stacks(stack_pool::of_size(options.stack_size)),
      loop(std::make_shared<event_loop>(workers)),
      owned_tasks(task_pool::make(*this, *loop, options.on_unhandled_exception)),
      tasks(*owned_tasks),
      blocking(std::make_shared<blocking_pool>(
          *this, options.blocking_threads, options.blocking_keep_alive,
          blocking_pool::thread_hooks{options.on_blocking_thread_start, options.on_blocking_thread_stop})),
      parker(*this, static_cast<std::uint32_t>(worker_limit(options.threads))),
      first_limit_(worker_limit(options.threads)),
      quota_counts_(options.threads == 0 && !std::getenv("ULEXITE_THREADS")),
      seen_dispatches_(workers) {
  install_death_reports();
  for (std::size_t i = 0; i < workers; ++i) schedulers.push_back(std::make_unique<scheduler>(*this, i));
  threads_.reserve(workers);
  bench_.reserve(workers);
  world.stands.resize(workers);
}

// ---- publishing ----

// The first worker is started here only, so the caller that meets a refusal can be told of it.
void runtime_state::ensure_worker() {
  if (has_worker_.load(std::memory_order_acquire)) return;  // pairs with the store below
  const std::lock_guard lock(first_start_);
  if (has_worker_.load(std::memory_order_relaxed)) return;  // first_start_ held
  stacks.provide();
  starts_refused_until_.store(0, std::memory_order_relaxed);  // hint
  parker.wake_one();
  if (parker.counts().started == 0) throw std::system_error(first_start_refused_, "ulexite: the first worker thread");
  has_worker_.store(true, std::memory_order_release);  // pairs with the load above
}

void runtime_state::inject(job& runnable, turn which) noexcept {
  intrusive_queue<job> one;
  one.push(runnable);
  inject(one, which);
}

void runtime_state::inject(intrusive_queue<job>& runnables, turn which) noexcept {
  if (runnables.empty()) return;
  static_cast<void>(tasks.gate.enter());
  injected.push(runnables, which);
  parker.notify();
  tasks.gate.leave();
}

void runtime_state::resume_from_outside(task& fiber) noexcept {
  outside_gate& gate = task_pool::of(&fiber).gate;
  if (gate.enter()) fiber.home().inject(fiber, turn::woken);
  gate.leave();
}

void runtime_state::count_spawn_slow(scheduler* here) {
  if (options.max_fibers != 0) {
    const auto before = live_limit_count_.fetch_add(1, std::memory_order_relaxed);  // counter
    if (before >= options.max_fibers) {
      live_limit_count_.fetch_sub(1, std::memory_order_relaxed);  // counter
      throw std::system_error(make_error_code(errc::limit_reached), std::to_string(before) + " fibers are alive");
    }
  }
  if (here) {
    here->counters().spawned.add();
  } else {
    spawned_outside_.fetch_add(1, std::memory_order_seq_cst);  // pairs with live: counted before it is published
  }
}

void runtime_state::count_end_slow(scheduler* here) noexcept {
  if (options.max_fibers != 0) live_limit_count_.fetch_sub(1, std::memory_order_relaxed);  // counter
  if (here) {
    here->counters().ended.add();
    return;
  }
  ended_outside_.fetch_add(1, std::memory_order_relaxed);  // counter
  const std::lock_guard lock(parker.mutex());
  if (quiet_waiter_) quiet_waiter_->poke();  // no worker's falling asleep will tell it
}

// Exact while every worker sleeps: their counters were written before they took the parker's mutex.
std::size_t runtime_state::live() const noexcept {
  std::uint64_t ended = ended_outside_.load(std::memory_order_relaxed);  // counter
  for (const auto& s : schedulers) ended += s->counters().ended.get();
  std::uint64_t spawned = spawned_outside_.load(std::memory_order_seq_cst);  // pairs with count_spawn
  for (const auto& s : schedulers) spawned += s->counters().spawned.get();
  return spawned > ended ? spawned - ended : 0;
}

// ---- stopping ----

// A fiber spawned from now on is asked to stop at its spawn (publish), the others here, whatever they are at.
void runtime_state::request_stop() noexcept {
  stop_requested_.store(true, std::memory_order_relaxed);  // ordered by the heavy fence
  std_atomics::heavy_fence();                              // A
  tasks.for_each([](agent& agent) { agent.word.request_stop(); });
  run_stop_callbacks(stop_source_);
  std_atomics::heavy_fence();  // wait_word.hpp C
  intrusive_queue<job> cancelled;
  tasks.for_each([&](agent& agent) {
    if (agent.word.cancel()) cancelled.push(agent.fiber());
  });
  inject(cancelled, turn::woken);
}

std::size_t runtime_state::stop_workers() noexcept {
  std::thread monitor;
  {
    const std::lock_guard lock(parker.mutex());
    monitor_stop_ = true;
    monitor.swap(monitor_thread_);
    if (monitor_agent_) monitor_agent_->poke();
  }
  if (monitor.joinable()) monitor.join();
  std::vector<std::thread> ended;
  {
    const std::lock_guard lock(parker.mutex());
    call_for(attention::end);  // for start_worker, ordered by the mutex
    ended.swap(threads_);
    for (worker_slot* const surplus : bench_) surplus->wake.notify_one();
  }
  parker.stop();
  for (std::thread& thread : ended) thread.join();
  tasks.gate.shut();  // what came late has no use for a worker, but still looks for one
  blocking->retire();
  for (const auto& s : schedulers) s->give_stacks_back();
  stack_pool::trim_all(true);  // there may be no monitor to do it later
  return live();
}

// What others may refer to stays as it is: an abandoned fiber's block and stack are never used again. So a wait node
// that stands there in a queue is found dead by the queue's next user, and what else stands there can still be used.
std::size_t runtime_state::abandon_all() noexcept {
  std::vector<task*> left, branches;
  tasks.for_each([&](agent& agent) {
    if (!agent.in_use) return;
    if (agent.fiber().is_branch()) branches.push_back(&agent.fiber());
    if (agent.fiber().state.phase() == fiber_phase::dead) return;
    agent.word.abandon();  // nothing that the others give up may resume it
    left.push_back(&agent.fiber());
  });
  for (task* const task : left) task->abandon();
  for (task* const task : branches) task->release();            // the frames of their forks no longer do
  ended_outside_.fetch_add(live(), std::memory_order_relaxed);  // counter; closures whose making was abandoned
  return left.size();
}

std::size_t runtime_state::threads_if_quiet() noexcept {
  const blocking_pool::counts calls = blocking->now();
  const std::lock_guard lock(parker.mutex());
  const idle_counts idle = parker.counts();
  const bool quiet = idle.sleeping == idle.started && !any_work() && starved.empty() && tasks.gate.idle();
  if (!quiet || calls.idle != calls.threads || calls.queued != 0) return 0;
  const bool other_monitor = monitor_thread_.joinable() && monitor_thread_.get_id() != std::this_thread::get_id();
  return idle.started + bench_.size() + calls.threads + (other_monitor ? 2 : 1);
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

// The hook may take long, and wait for fibers. So the worker is no searcher meanwhile, on whom others would rely: what
// is published from now on wakes or starts another, and what lies there already does so here, if it is more than the
// workers in their hooks will take. The monitor sees to it when that takes too long.
void runtime_state::call_start_hook(std::size_t index) {
  const std::size_t coming = in_hooks_.fetch_add(1, std::memory_order_relaxed) + 1;  // hint
  if (parker.leave_search(*schedulers[index]) && queued() > coming) parker.wake_one();
  options.on_thread_start(index);
  in_hooks_.fetch_sub(1, std::memory_order_relaxed);  // hint
}

task* runtime_state::be_worker(std::size_t index) noexcept {
  const signal_stack signals;
  if (options.on_thread_start) call_start_hook(index);
  task* const on_leave = schedulers[index]->run();
  if (options.on_thread_stop) options.on_thread_stop(index);
  return on_leave;
}

void runtime_state::wake_loop() noexcept { loop->wake(); }

bool runtime_state::starts_suspended() const noexcept {
  return starts_refused_until_.load(std::memory_order_relaxed) > now_ns();  // hint
}

// Started with the search role of the one that found it needed. The number of a worker is its place among the threads.
bool runtime_state::start_worker() noexcept {
  const std::lock_guard lock(parker.mutex());
  if (ending()) return false;  // nobody would join it
  if (!bench_.empty()) {
    worker_slot& recalled = *bench_.back();
    bench_.pop_back();
    recalled.notified = true;
    recalled.wake.notify_one();
    some_awake();
    return true;
  }
  try {
    threads_.emplace_back([this, index = threads_started_] {
      set_runtime_of_thread(*this);
      inherited_state.adopt();
      schedulers[index]->searching = true;  // whoever starts a worker makes it a searcher
      if (task* const on_leave = be_worker(index)) inject(*on_leave, turn::woken);
    });
    ++threads_started_;
    if (monitor_asleep_) std::exchange(monitor_asleep_, nullptr)->poke();
    return true;
  } catch (const std::exception& refused) {
    const auto* const told = dynamic_cast<const std::system_error*>(&refused);  // else std::bad_alloc
    if (threads_started_ == 0)
      first_start_refused_ = told ? told->code() : make_error_code(std::errc::not_enough_memory);
    starts_refused_.fetch_add(1, std::memory_order_relaxed);                                 // counter
    starts_refused_until_.store(now_ns() + tuning::start_pause, std::memory_order_relaxed);  // hint
    return false;
  }
}

// Mutex held, as in some_awake.
void runtime_state::all_asleep() noexcept {
  if (quiet_waiter_) quiet_waiter_->poke();
}

void runtime_state::some_awake() noexcept {
  wakes_.fetch_add(1, std::memory_order_relaxed);  // counter
  if (monitor_asleep_) std::exchange(monitor_asleep_, nullptr)->poke();
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
  m.fibers_ended = ended_outside_.load(std::memory_order_relaxed);      // counter
  m.fibers_spawned = spawned_outside_.load(std::memory_order_relaxed);  // counter
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
  m.wakes = wakes_.load(std::memory_order_relaxed);                           // counter
  m.thread_starts_refused = starts_refused_.load(std::memory_order_relaxed);  // counter
  m.hogs_relieved = hogs_relieved_.load(std::memory_order_relaxed);           // counter
  m.polls_rescued = polls_rescued_.load(std::memory_order_relaxed);           // counter
  m.rescued_wakeups = rescued_.load(std::memory_order_relaxed);               // counter
  return m;
}

}  // namespace ulexite::detail
