// What a worker does on its thread's own stack when its queues give nothing, or when something is due that takes locks
// or time: the shared queue, the event loop, other workers' queues, sleep.

#include <ulexite/base/perturb.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/task/waiting_event.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace ulexite::detail {
// The main stack's choice, which never blocks either.
job* scheduler::next() noexcept {
  if (until_housekeeping_ == 0)
    if (job* const due = housekeeping()) return due;
  if (has_slot() && slot_streak_ >= tuning::slot_streak_limit && may_have_work()) {
    slot_streak_ = 0;
    if (job* const patient = slot_.take()) add(*patient);
  }
  if (job* const mine = next_local()) return mine;
  // Last: the fiber that forked takes them back for less, if it comes back soon.
  if (job* const forked = forks_.start_next(false)) return forked;
  if (has_pinned()) [[unlikely]]
    if (job* const pinned = take_pinned()) return pinned;
  const bool may_take = last_theft_.patience == 0 && last_theft_.count < tuning::smallest_batch;
  return may_take || few_injected() ? take_injected(tuning::inject_batch) : nullptr;
}

// Every so many dispatches: the event loop gets its turn, the shared queue and the forks too, and a victim that does
// not get on.
job* scheduler::housekeeping() noexcept {
  const std::int64_t now = now_ns();
  pace(now);
  judge_last_slot_wake(now);
  const bool polled = std::exchange(polled_, false);  // as a worker does that lives on events
  if (!polled && now - last_poll_ >= tuning::poll_interval) {
    last_poll_ = now;
    poll_events(false);
    polled_ = false;
    if (eager() && home_.parker.nobody_polls()) home_.parker.wake_one();
  }
  const bool leave_forks = std::exchange(leave_forks_, false);
  forks_turn_ = !forks_turn_ && !leave_forks;  // neither starves the other
  visit_asked_ = false;
  job* due = has_pinned() ? take_pinned() : nullptr;
  if (!due && forks_turn_) due = forks_.start_next(true);
  if (due || (due = take_injected(tuning::visit_batch)) || (!leave_forks && (due = forks_.start_next(true))))
    return due;
  return probe_stuck_victim();
}

// As many dispatches to the next visit as fit into a poll interval, by the last one's measure.
void scheduler::pace(std::int64_t now) noexcept {
  const std::int64_t elapsed = std::max<std::int64_t>(now - last_visit_, 1);
  const std::int64_t fitting = tuning::poll_interval * quanta_per_visit_ / elapsed;
  quanta_per_visit_ = static_cast<unsigned>(std::clamp<std::int64_t>(fitting, 1, tuning::dispatches_per_visit));
  until_housekeeping_ = quanta_per_visit_;
  last_visit_ = now;
  note_time(now);
  if (traced()) record(trace_kind::queue, queued());
}

// Do fibers run so long that the event loop must not wait for this worker?
bool scheduler::eager() const noexcept { return quanta_per_visit_ <= tuning::eager_dispatches; }

// Half of what was woken at another worker, or else of what is new there.
job* scheduler::steal_fibers(scheduler& victim) noexcept {
  job* const woken = victim.woken_.steal_half(woken_);
  if (!woken) return victim.ring_.steal_half(ring_);
  sides_empty_ = false;
  return woken;
}

// A worker that did not dispatch between two of our looks at it is stuck in a long fiber: half of what waits behind
// that comes here. One that gets on is left alone.
job* scheduler::probe_stuck_victim() noexcept {
  const std::size_t others = home_.schedulers.size() - 1;
  if (others == 0) return nullptr;
  scheduler& victim = *home_.schedulers[watched_victim_];
  job* stolen = nullptr;
  if (&victim != this && victim.counters.dispatches.get() == watched_dispatches_) {
    stolen = steal_fibers(victim);
    if (stolen) {
      counters.steals.add();
      home_.parker.notify();
    }
  }
  watched_victim_ = (index_ + 1 + random_.below(static_cast<std::uint32_t>(others))) % home_.schedulers.size();
  watched_dispatches_ = home_.schedulers[watched_victim_]->counters.dispatches.get();
  return stolen;
}

// Up to `most` from the shared queue, of which this worker's share: the first is returned, the others go to its deques.
job* scheduler::take_injected(std::size_t most) noexcept {
  const std::size_t length = home_.injected.size();
  if (length == 0) return nullptr;
#ifdef ULEXITE_DEBUG_MIGRATE
  // What ran here last is left to another worker, a few times.
  for (int attempt = 0; attempt < 8; ++attempt) {
    intrusive_queue<job> one, woken_one;
    home_.injected.take(1, one, woken_one);
    const turn which = one.empty() ? turn::woken : turn::ordinary;
    job* const only = one.empty() ? woken_one.pop() : one.pop();
    if (!only || alone() || !fiber::is_fiber(*only) || static_cast<task*>(only)->last_worker != index_) return only;
    home_.inject(*only, which);
    std::this_thread::yield();
  }
#endif
  intrusive_queue<job> taken, woken;
  home_.injected.take(std::min(most, length / home_.parker.limit() + 1), taken, woken);
  job* const first = woken.empty() ? taken.pop() : woken.pop();
  if (!first) return nullptr;
  if (!taken.empty() || !woken.empty()) {
    while (job* const other = woken.pop())
      if (!push_woken(*other)) push_ring(*other);
    while (job* const other = taken.pop()) {
      if (fiber::is_fiber(*other)) {
        push_ring(*other);
      } else {
        push_job(*other);
      }
    }
    home_.parker.notify();  // they were in no queue for a moment, and a searcher may have missed them
  }
  return first;
}

// ---- searching, polling, parking ----

job* scheduler::steal(bool slots_too) noexcept {
  const std::size_t n = home_.schedulers.size();
  const std::size_t start = random_.below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    scheduler& victim = *home_.schedulers[(start + i) % n];
    if (&victim == this) continue;
    job* stolen = steal_fibers(victim);
    if (!stolen && (stolen = victim.jobs_.steal_half(jobs_))) sides_empty_ = false;
    if (!stolen) stolen = victim.forks_.steal(home_);
    if (!stolen && slots_too && victim.has_slot()) {
      slots_too = false;
      if (stands_still(victim)) stolen = victim.raid_slot();
    }
    if (!stolen) continue;
    counters.steals.add();
    return stolen;
  }
  return nullptr;
}

// What a worker woke last it runs next, and is better left to it: the two fibers are likely to go on waking each other,
// and on two workers they would meet on the channel between them for each item. Unless it has to wait for longer than
// it would travel. (As in Go, which waits 3 us before it steals what runs next.)
bool scheduler::stands_still(const scheduler& victim) noexcept {
  const auto before = victim.counters.dispatches.get();
  for (int i = 0; i < 128 && victim.has_slot(); ++i) cpu_relax();
  return victim.counters.dispatches.get() == before;
}

// Fibers that end faster than they travel between cores are better left to the worker that made them. Whether they do
// shows in how soon after a theft of several this worker is out of work again. Then it waits before the next, longer
// each time; meanwhile it still is a searcher, so that nobody else is woken for them either.
void scheduler::judge_last_theft(std::int64_t now) noexcept {
  if (last_theft_.count < tuning::smallest_batch) return;  // says little
  const bool was_worth_it =
      now - last_theft_.time >= static_cast<std::int64_t>(last_theft_.count) * tuning::transfer_cost;
  last_theft_.patience =
      tuning::next_pause(was_worth_it, last_theft_.patience, tuning::shortest_patience, tuning::longest_patience);
  last_theft_.count = 0;
}

// A few in the shared queue are no batch of tiny ones: whoever put them there waits for a worker.
bool scheduler::few_injected() const noexcept { return home_.injected.size() < tuning::smallest_batch; }

job* scheduler::take_from_others(bool slots_too) noexcept {
  const std::size_t before = in_deques();
  job* const taken = take_injected(tuning::inject_batch);
  if (job* const first = taken ? taken : steal(slots_too)) {
    last_theft_.time = now_ns();
    if (traced()) record(trace_kind::steal);
    last_theft_.count = in_deques() - before + 1;
    return first;
  }
  return nullptr;
}

job* scheduler::search() noexcept {
  if (home_.parker.counts().awake() <= 1) return take_injected(tuning::inject_batch);  // nobody to steal from
  if (!home_.parker.begin_search(*this)) return nullptr;
  const std::int64_t start = now_ns();
  note_time(start);
  judge_last_theft(start);
  for (std::int64_t now = start;; now = now_ns()) {
    perturb();
    const bool last = now - start >= std::max(tuning::search_time, last_theft_.patience);
    if (now - start >= last_theft_.patience) {
      if (job* const taken = take_from_others(last)) return taken;
    } else if (few_injected()) {
      if (job* const injected = take_injected(tuning::inject_batch)) return injected;
    }
    if (job* const ready = poll_events(true)) return ready;
    if (last || home_.parker.counts().awake() <= 1) return nullptr;
    if (home_.crowded) {
      std::this_thread::yield();
    } else {
      for (int i = 0; i < 64; ++i) cpu_relax();
    }
  }
}

// One turn of the event loop without blocking, unless somebody else is at it.
job* scheduler::poll_events(bool run_first) noexcept {
  if (!home_.parker.try_acquire_poller(*this)) return nullptr;
  event_list ready;
  home_.loop->poll(ready);
  home_.parker.release_poller();
  counters.polls.add();
  polled_ = true;
  ready_ = &ready;
  job* const first = distribute(run_first);
  ready_ = nullptr;
  return first;
}

// Makes the fibers of the events runnable, in their order, here, where others can take half of them; what has no room, for
// all. With `run_first` the first is returned instead, to run at once, for which nobody need be woken.
job* scheduler::distribute(bool run_first) noexcept {
  if (!ready_ || ready_->empty()) return nullptr;
  counters.events.add(ready_->size());
  const auto next = [this]() -> task& {
    task& woken = task_of(*ready_->pop());
    if (home_.trace.recording.load(std::memory_order_relaxed)) note_runnable(woken);  // hint
    return woken;
  };
  job* first = nullptr;
  if (run_first) first = &next();
  if (ready_->empty()) return first;
  intrusive_queue<job> surplus;
  while (!ready_->empty()) {
    task& woken = next();
    if (!surplus.empty() || !push_woken(woken)) surplus.push(woken);
  }
  if (!surplus.empty()) home_.injected.push(surplus, turn::woken);
  home_.parker.notify();
  return first;
}

scheduler::outcome scheduler::sleep() {
  if (!home_.options.on_thread_idle) return home_.parker.park(*this);
  struct {
    scheduler& self;
    outcome ended;
  } call{*this, {}};
  home_.options.on_thread_idle(
      [](void* data) {
        auto& here = *static_cast<decltype(call)*>(data);
        here.ended = here.self.home_.parker.park(here.self);
      },
      &call);
  return call.ended;
}

job* scheduler::park(bool& stopping) noexcept {
  event_list ready;
  ready_ = &ready;
  if (!home_.starved.empty()) give_stacks_back();  // others need them
  busy_.store(false, std::memory_order_relaxed);   // hint
  if (traced()) record(trace_kind::park);
  const outcome ended = sleep();
  if (traced()) record(trace_kind::unpark);
  counters.parks.add();
  busy_.store(true, std::memory_order_relaxed);  // hint
  const std::int64_t now = now_ns();
  note_time(now);
  judge_last_slot_wake(now);
  stopping = ended == outcome::stopping;
  job* first = nullptr;
  if (!ready.empty()) {
    home_.parker.end_search(*this, eager());
    first = distribute(true);
    // Whoever watched the event loop goes to run a fiber, perhaps a long one.
    if (first && eager() && home_.parker.nobody_polls()) home_.parker.wake_one();
  }
  ready_ = nullptr;
  return first;
}

void runtime_state::sleep_in_loop(worker_slot& worker_slot) noexcept {
  auto& sleeper = static_cast<scheduler&>(worker_slot);
  loop->wait(*sleeper.ready_);
  sleeper.counters.polls.add();
  sleeper.polled_ = true;
}

}  // namespace ulexite::detail
