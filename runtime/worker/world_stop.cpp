// A worker's duties at a safepoint, between two fibers, at another thread's request: the end, a stop of the world, a
// smaller number of workers.

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/inspection.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ulexite::detail {
namespace {

// How long stop_world waits before it asks again. Short, because the fibers of halted workers wait during this time.
constexpr std::chrono::microseconds time_to_next_look{200};

}  // namespace

// Called in each turn of the loop in which there is such a request, with the work that was chosen. If it returns that
// work, it runs next. Null: there was none, or the worker ends. The worker leaves the search first, because it may wait
// here, and others would rely on a searcher.
job* scheduler::handle_safepoint(job* chosen, bool& stopping) noexcept {
  runtime_.parker.end_search(*this, eager());
  if (asked(request::halt)) runtime_.wait_while_stopped(*this);
  stopping = asked(request::end);
  return stopping ? nullptr : chosen;
}

// ---- the number of workers ----

// A surplus worker leaves its work at its next turn of the loop.
void runtime_state::resize(std::size_t to) noexcept {
  parker.set_limit(static_cast<std::uint32_t>(to));
  if (!parker.is_surplus()) return;
  for (const auto& s : schedulers) s->ask(request::maintenance);
}

// A surplus worker moves all its work to the shared queue, where others take it, and must park. For this the offered
// forks become fibers. Pinned fibers keep their worker.
bool scheduler::leaves_work() noexcept {
  if (queues.has_pins()) return false;
  runtime_.parker.end_search(*this, eager());
  intrusive_queue<job> woken, others;
  queues.drain([&](job& mine, priority which) { (which == priority::woken ? woken : others).push(mine); });
  // A branch is in the frame of its fork, and only as a fiber it can be in the shared queue.
  while (job* const forked = forks_.start_next(true)) others.push(*forked);
  runtime_.inject(woken, priority::woken);
  runtime_.inject(others);
  give_stacks_back();
  return true;
}

// ---- the stop of the world ----

// The request may be old: whether the world is being stopped is asked again with the mutex held.
void runtime_state::wait_while_stopped(scheduler& worker) noexcept {
  std::unique_lock lock(world.mutex);
  if (!world.halting) return;
  world.halted[worker.index()] = true;
  world.changed.notify_one();
  world.over.wait(lock, [this] { return !world.halting; });
  world.halted[worker.index()] = false;
}

// Asks each worker to halt, and its fiber to yield, until all have stopped. The request to yield ends with the fiber's
// quantum, so it is repeated. A worker that sleeps takes the parker's mutex before it continues, and then sees the
// request to halt. So workers that sleep or have stopped, counted with both mutexes held, do not run before the world
// is started. The caller may be a fiber: then its own worker counts too. A fiber in a brief call without a worker has
// its registers in use, so its end is waited for. So is that of a tick of the monitor; the next tick does nothing.
bool runtime_state::stop_world(std::int64_t deadline, std::vector<late_fiber>& late) {
  if (world.taken.exchange(true, std::memory_order_acquire))  // pairs with start_world, world_stop.hpp A
    throw usage_error("the world of this runtime is stopped already, or about to be");
  scheduler* const here = this_scheduler();
  // The caller's own worker runs the caller, so it does not stop. No other fiber runs there, because the caller does
  // not wait.
  const std::size_t own = here && &here->runtime() == this ? 1 : 0;
  {
    const std::lock_guard lock(world.mutex);
    world.halting = true;
  }
  for (const auto& s : schedulers) s->ask(request::halt);
  const auto all_halted = [&] {
    const std::lock_guard idle_lock(parker.mutex());
    const std::lock_guard lock(world.mutex);
    const idle_counts idle = parker.counts();
    const auto halted = static_cast<std::size_t>(std::ranges::count(world.halted, true));
    return idle.sleeping + halted + own == idle.started && !brief_calls.any_lasts() && !monitor.ticks();
  };
  while (!all_halted()) {
    if (now_ns() >= deadline) {
      // The time is over: the world starts again, and the report names the fibers that were too slow.
      try {
        late = find_late_fibers(here);
      } catch (...) {
        start_world();
        throw;
      }
      start_world();
      return false;
    }
    for (const auto& s : schedulers)
      if (s.get() != here) s->ask(request::yield);
    std::unique_lock lock(world.mutex);
    world.changed.wait_for(lock, time_to_next_look);
  }
  world.stopped.set(true);
  return true;
}

// For the report, after the time is over: the workers that still run, with their fibers. A hint.
std::vector<late_fiber> runtime_state::find_late_fibers(const scheduler* except) {
  std::vector<late_fiber> found;
  for (const auto& s : schedulers) {
    {
      const std::lock_guard lock(world.mutex);
      if (s.get() == except || !s->activity.busy() || world.halted[s->index()]) continue;
    }
    fiber_record runs = running_on(*s);
    found.push_back({.id = runs.id, .name = std::move(runs.name), .where = runs.where, .worker = s->index()});
  }
  return found;
}

// The requests are withdrawn first, so that a worker that continues does not come here again.
void runtime_state::start_world() noexcept {
  world.stopped.set(false);
  for (const auto& s : schedulers) s->withdraw(request::halt);
  {
    const std::lock_guard lock(world.mutex);
    world.halting = false;
    world.over.notify_all();
  }
  world.taken.store(false, std::memory_order_release);  // pairs with stop_world, world_stop.hpp A
}

}  // namespace ulexite::detail
