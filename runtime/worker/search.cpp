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
  if (pace_.visit_due())
    if (job* const due = housekeeping()) return due;
  if (has_slot() && queues_.slot_had_its_share() && may_have_work()) {
    queues_.end_slot_streak();
    if (job* const patient = queues_.take_slot()) add(*patient);
  }
  if (job* const mine = next_local()) return mine;
  // Last: the fiber that forked takes them back for less, if it comes back soon.
  if (job* const forked = forks_.start_next(false)) return forked;
  if (has_pinned()) [[unlikely]]
    if (job* const pinned = take_pinned()) return pinned;
  return thefts_.may_take() || few_injected() ? take_injected(tuning::inject_batch) : nullptr;
}

// Every so many dispatches: the event loop gets its turn, the shared queue and the forks too, and a victim that does
// not get on.
job* scheduler::housekeeping() noexcept {
  const std::int64_t now = now_ns();
  pace_.begin_visit(now);
  if (traced()) record(trace_kind::queue, queued());
  notice_.judge_slot_wake(now, queues_.alone());
  if (pace_.poll_due(now)) {
    poll_events(false);
    pace_.forget_poll();
    if (eager() && home_.parker.nobody_polls()) home_.parker.wake_one();
  }
  const bool leave_forks = pace_.take_leave_forks();
  const bool forks_first = pace_.forks_first(leave_forks);
  pace_.visit_done();
  job* due = has_pinned() ? take_pinned() : nullptr;
  if (!due && forks_first) due = forks_.start_next(true);
  if (due || (due = take_injected(tuning::visit_batch)) || (!leave_forks && (due = forks_.start_next(true))))
    return due;
  return probe_stuck_victim();
}

// A worker that did not dispatch between two of our looks at it is stuck in a long fiber: half of what waits behind
// that comes here. One that gets on is left alone.
job* scheduler::probe_stuck_victim() noexcept {
  const std::size_t workers = home_.schedulers.size();
  if (workers == 1) return nullptr;
  scheduler& victim = *home_.schedulers[thefts_.watched()];
  job* stolen = nullptr;
  if (&victim != this && victim.counters().dispatches.get() == thefts_.watched_dispatches()) {
    stolen = queues_.steal_fibers(victim.queues_);
    if (stolen) {
      counters().steals.add();
      home_.parker.notify();
    }
  }
  const scheduler& watched = *home_.schedulers[thefts_.watch_another(index_, workers)];
  thefts_.note_watched(watched.counters().dispatches.get());
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
    if (!only || queues_.alone() || !fiber::is_fiber(*only) || static_cast<task*>(only)->last_worker != index_)
      return only;
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
      if (!queues_.push_woken(*other)) push_ring(*other);
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
  const std::size_t start = thefts_.first_victim(n);
  for (std::size_t i = 0; i < n; ++i) {
    scheduler& victim = *home_.schedulers[(start + i) % n];
    if (&victim == this) continue;
    job* stolen = queues_.steal_fibers(victim.queues_);
    if (!stolen) stolen = queues_.steal_jobs(victim.queues_);
    if (!stolen) stolen = victim.forks_.steal(home_);
    if (!stolen && slots_too && victim.has_slot()) {
      slots_too = false;
      if (stands_still(victim)) stolen = victim.raid_slot();
    }
    if (!stolen) continue;
    counters().steals.add();
    return stolen;
  }
  return nullptr;
}

// What a worker woke last it runs next, and is better left to it: the two fibers are likely to go on waking each other,
// and on two workers they would meet on the channel between them for each item. Unless it has to wait for longer than
// it would travel. (As in Go, which waits 3 us before it steals what runs next.)
bool scheduler::stands_still(const scheduler& victim) noexcept {
  const auto before = victim.counters().dispatches.get();
  for (int i = 0; i < 128 && victim.has_slot(); ++i) cpu_relax();
  return victim.counters().dispatches.get() == before;
}

// A few in the shared queue are no batch of tiny ones: whoever put them there waits for a worker.
bool scheduler::few_injected() const noexcept { return home_.injected.size() < tuning::smallest_batch; }

job* scheduler::take_from_others(bool slots_too) noexcept {
  const std::size_t before = queues_.size();
  job* const taken = take_injected(tuning::inject_batch);
  if (job* const first = taken ? taken : steal(slots_too)) {
    const std::int64_t now = now_ns();
    if (traced()) record(trace_kind::steal);
    thefts_.note(queues_.size() - before + 1, now);
    return first;
  }
  return nullptr;
}

job* scheduler::search() noexcept {
  if (home_.parker.counts().awake() <= 1) return take_injected(tuning::inject_batch);  // nobody to steal from
  if (!home_.parker.begin_search(*this)) return nullptr;
  const std::int64_t start = now_ns();
  pace_.note_time(start);
  thefts_.judge(start);
  for (std::int64_t now = start;; now = now_ns()) {
    perturb();
    const bool last = now - start >= std::max(tuning::search_time, thefts_.patience());
    if (now - start >= thefts_.patience()) {
      if (job* const taken = take_from_others(last)) return taken;
    } else if (few_injected()) {
      if (job* const injected = take_injected(tuning::inject_batch)) return injected;
    }
    if (job* const ready = poll_events(true)) return ready;
    if (last || home_.parker.counts().awake() <= 1) return nullptr;
    if (home_.threads.crowded()) {
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
  counters().polls.add();
  pace_.note_poll();
  return distribute(ready, run_first);
}

// Makes the fibers of the events runnable, in their order, here, where others can take half of them; what has no room, for
// all. With `run_first` the first is returned instead, to run at once, for which nobody need be woken.
job* scheduler::distribute(event_list& ready, bool run_first) noexcept {
  if (ready.empty()) return nullptr;
  counters().events.add(ready.size());
  job* first = nullptr;
  if (run_first) first = &task_of(*ready.pop());
  if (ready.empty()) return first;
  intrusive_queue<job> surplus;
  while (event* const fired = ready.pop()) {
    task& woken = task_of(*fired);
    if (!surplus.empty() || !queues_.push_woken(woken)) surplus.push(woken);
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
  if (home_.monitor.any_starved()) give_stacks_back();  // others need them
  activity_.set_busy(false);
  if (traced()) record(trace_kind::park);
  const outcome ended = sleep();
  ready_ = nullptr;
  if (traced()) record(trace_kind::unpark);
  counters().parks.add();
  activity_.set_busy(true);
  const std::int64_t now = now_ns();
  pace_.note_time(now);
  notice_.judge_slot_wake(now, queues_.alone());
  stopping = ended == outcome::stopping;
  job* first = nullptr;
  if (!ready.empty()) {
    home_.parker.end_search(*this, eager());
    first = distribute(ready, true);
    // Whoever watched the event loop goes to run a fiber, perhaps a long one.
    if (first && eager() && home_.parker.nobody_polls()) home_.parker.wake_one();
  }
  return first;
}

void runtime_state::sleep_in_loop(worker_slot& worker_slot) noexcept {
  auto& sleeper = static_cast<scheduler&>(worker_slot);
  loop->wait(*sleeper.ready_);
  sleeper.counters().polls.add();
  sleeper.pace_.note_poll();
}

}  // namespace ulexite::detail
