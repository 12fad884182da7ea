// The worker's steps on its thread's own stack: when its queues are empty, and at maintenance. They take locks or time:
// the shared queue, the event loop, other workers' queues, sleep. Owner only, except the thief's half of a theft.
//
// The order of the sources is a compromise. Own work is in this processor's caches. The shared queue costs a lock. A
// theft costs the transfer of the fibers' memory, and a poll is a system call.

#include <ulexite/base/perturb.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace ulexite::detail {

// The main stack's first choice: own work, or maintenance. It never blocks, and takes nothing from another worker.
job* scheduler::next() noexcept {
  // After a streak, next_local has left the fiber in the slot there because others wait. It goes behind them, and the
  // streak begins again. It begins again also if the others are gone. Otherwise next_local could leave the slot once
  // more below, for fibers that came with maintenance; if a thief took those, this worker would fall asleep with a
  // fiber in its slot.
  if (queues.slot_streak_exceeded()) {
    queues.reset_slot_streak();
    if (job* const displaced = queues.has_slot() && others_wait() ? queues.take_slot() : nullptr)
      enqueue_displaced(*displaced);
  }
  if (maintenance_due() || queues.maintenance_due())
    if (job* const due = maintenance()) return due;
  if (job* const mine = next_local()) return mine;
  if (queues.maintenance_due()) return next();  // a long turn of the ring has ended just now
  if (queues.has_pinned()) [[unlikely]]
    if (job* const pinned = take_pinned()) return pinned;
  // Forks come last: if the forking fiber resumes soon, it takes them back more cheaply.
  if (job* const forked = forks_.start_next(false)) return forked;
  // Without a search, which would make this worker a searcher.
  return take_injected(tuning::inject_batch);
}

// Maintenance. A worker with endless own work polls the event loop here, takes a few from the shared queue, or
// starts a fork. So none of these starves. Returns what to run first, or null.
job* scheduler::maintenance() noexcept {
  const std::int64_t now = now_ns();
  pace_.begin_maintenance(now);
  queues.begin_maintenance(now);
  note(request::maintenance, false);
  if (traced()) record(trace_kind::queue, queued());
  announce_if_due(now);
  // The first of the fired fibers waits like the others: this worker has own work.
  if (pace_.poll_due(now)) {
    poll_events(false, now);
    runtime_.parker.pass_poller_on(eager());
  }
  // Where fibers run long, each dispatch does maintenance, and next_local has left this turn to the main stack.
  if (queues.has_pinned()) {
    queues.on_pinned();
    if (queues.pinned_is_next()) return take_pinned();
  }
  if (job* const stolen = steal_from_stalled(now)) return stolen;
  job* const forked = pace_.forks_are_next() ? forks_.start_next(true) : nullptr;
  return forked ? forked : take_share();
}

// A busy worker never searches. So at maintenance it looks at one other, and moves half of what waits behind a fiber
// that runs long, or in the middle of which the thread has lost its processor.
job* scheduler::steal_from_stalled(std::int64_t now) noexcept {
  if (queues.alone()) return nullptr;
  // With more workers than processors, each thread loses its own now and then.
  const std::int64_t least = runtime_.threads.crowded() ? tuning::tick_interval : tuning::stall_time;
  const std::size_t workers = runtime_.schedulers.size();
  scheduler& victim = *runtime_.schedulers[(index_ + 1 + victims_.first(workers - 1)) % workers];
  if (!victims_.may_look(victim.index_, now, least) || !victims_.stood_still(victim.index_, victim.progress(), now))
    return nullptr;
  job* stolen = queues.steal_woken(victim.queues);
  if (!stolen) {
    stolen = queues.steal_ring(victim.queues);
    if (!stolen) return nullptr;
    if (queues.has_woken()) push_ring(*std::exchange(stolen, nullptr));
  }
  count_theft(victim);
  runtime_.parker.notify();  // the others were in no queue for a moment, and a searcher may have missed them
  return stolen;
}

// Maintenance's share of the shared queue. While woken fibers are there, those of later events collect behind them
// (distribute). So as many are taken as this worker runs until the next maintenance. Otherwise, if more fibers take
// turns than the rings hold, as many are taken as go there from the ring, behind all others. The ring's oldest stay,
// because their turn is near.
job* scheduler::take_share() noexcept {
  std::size_t exchanged = 0;
  const std::size_t length = runtime_.injected.size(), share = length / runtime_.parker.limit() + 1;
  if (length > 0 && queues.room() < share) {
    intrusive_queue<job> newest;
    exchanged = queues.take_newest(share, counters().spawned.get(), counters().dispatches.get(), newest);
    if (exchanged > 0) runtime_.injected.push(newest);
    runtime_.parker.notify();  // a searcher may have missed them
  }
  std::size_t most = exchanged > 0 ? exchanged : tuning::maintenance_batch;
  if (runtime_.injected.has_woken())
    most = std::max<std::size_t>(pace_.dispatches_to_maintenance(), tuning::maintenance_batch);
  return take_injected(most, exchanged);
}

// Takes this worker's share of the shared queue, but at most `most`, because the lock is held during this. Of ordinary
// fibers it takes as many as have come there from the ring just now, `exchanged`, or as the ring has room for. The
// first is returned, the others go to this worker's deques, where thieves find them. Fibers that were woken go before
// the others. So if there are some in this worker's deque, none is returned: each has its turn behind those.
job* scheduler::take_injected(std::size_t most, std::size_t exchanged) noexcept {
  const std::size_t length = runtime_.injected.size();
  if (length == 0) return nullptr;
#ifdef ULEXITE_DEBUG_MIGRATE
  // For tests: leaves a fiber that ran here last to another worker, a few times.
  for (int attempt = 0; attempt < 8; ++attempt) {
    intrusive_queue<job> new_one, woken_one;
    runtime_.injected.take(1, 1, 1, new_one, woken_one);
    const priority which = new_one.empty() ? priority::woken : priority::ordinary;
    job* const only = new_one.empty() ? woken_one.pop() : new_one.pop();
    if (!only || queues.alone() || !fiber::is_fiber(*only) || static_cast<task*>(only)->last_worker != index_)
      return only;
    runtime_.inject(*only, which);
    std::this_thread::yield();
  }
#endif
  intrusive_queue<job> taken, woken;
  // Without the limits, ordinary ones would push the ring's oldest out, behind all others here, and woken ones would
  // overflow into the ring, where later ones overtake them.
  runtime_.injected.take(std::min(most, length / runtime_.parker.limit() + 1), std::max(exchanged, queues.room()),
                         queues.room_for_woken(), taken, woken);
  if (!taken.empty()) queues.mark_ordinary(counters().dispatches.get());
  job* const first = queues.has_woken() ? nullptr : !woken.empty() ? woken.pop() : taken.pop();
  if (!taken.empty() || !woken.empty()) {
    while (job* const other = woken.pop())
      if (!queues.push_woken(*other)) push_ring(*other);
    while (job* const other = taken.pop()) push_ring(*other);
    queues.mark_filled(counters().spawned.get(), counters().dispatches.get());
    runtime_.parker.notify();  // they were in no queue for a moment, and a searcher may have missed them
  }
  return first;
}

// ---- searching, polling, parking ----

// One round over all workers, from a random one on, so that thieves do not meet at the same victim. The kinds are in
// the order of their worth: woken fibers, the ring, then the oldest fork, which is the largest part of its computation.
// One slot is tried in a round, and only in the last round of a search, because it costs a heavy fence.
job* scheduler::steal(bool slots_too, std::int64_t now) noexcept {
  const std::size_t n = runtime_.schedulers.size();
  const std::size_t start = victims_.first(n);
  for (std::size_t i = 0; i < n; ++i) {
    scheduler& victim = *runtime_.schedulers[(start + i) % n];
    if (&victim == this) continue;
    job* stolen = nullptr;
    const victims::worth worth = look_at(victim, now);
    if (worth != victims::worth::nothing) stolen = queues.steal_woken(victim.queues);
    if (!stolen && worth == victims::worth::all) stolen = queues.steal_ring(victim.queues);
    if (!stolen) stolen = victim.forks_.steal(runtime_);
    if (!stolen && worth == victims::worth::all && slots_too && victim.queues.has_slot()) {
      slots_too = false;
      if (is_stalled(victim)) stolen = victim.queues.steal_slot();
    }
    if (!stolen) continue;
    count_theft(victim);
    return stolen;
  }
  return nullptr;
}

void scheduler::count_theft(scheduler& victim) noexcept {
  counters().steals.add();
  victim.thefts_.fetch_add(1, std::memory_order_relaxed);  // hint
  if (traced()) record(trace_kind::steal);
}

// Without a processor of its own a victim may stand still for a while, so two looks are apart then.
victims::worth scheduler::look_at(const scheduler& victim, std::int64_t now) noexcept {
  const std::int64_t least = runtime_.threads.crowded() ? tuning::search_time : 0;
  if (!victims_.may_look(victim.index_, now, least)) return victims::worth::nothing;
  return victims_.look(victim.index_, victim.progress(), victim.queues.size(), now);
}

// Whether the victim dispatches nothing for about 3 us, as in Go. The fiber in its slot and its waker are likely to
// wake each other again. On two workers they would contend for the channel between them for each item. So the victim
// keeps its slot, unless the fiber there waits for longer than its migration would take.
bool scheduler::is_stalled(const scheduler& victim) noexcept {
  const auto before = victim.counters().dispatches.get();
  for (int i = 0; i < 128; ++i) {
    if (!victim.queues.has_slot()) return false;  // its owner runs that fiber now, before it counts the dispatch
    cpu_relax();
  }
  return victim.counters().dispatches.get() == before;
}

// The shared queue or a theft.
job* scheduler::take_from_others(bool slots_too, std::int64_t now) noexcept {
  job* const injected = take_injected(tuning::inject_batch);
  return injected ? injected : steal(slots_too, now);
}

// Looks for work for about as long as a sleep and a wake take, and then returns null. The number of searching workers
// is limited (begin_search); the others go to sleep directly. A publisher wakes no worker while one searches. So a
// searcher must not stop without a last check, which the parker makes.
job* scheduler::search() noexcept {
  if (runtime_.parker.counts().awake() <= 1) return take_injected(tuning::inject_batch);  // no victim is awake
  if (!runtime_.parker.begin_search(*this)) return nullptr;
  const std::int64_t start = now_ns();
  pace_.set_time(start);
  victims_.out_of_work(start);
  for (std::int64_t now = start;;) {
    perturb();
    const bool last = now - start >= tuning::search_time;
    if (job* const taken = take_from_others(last, now)) return taken;
    if (job* const ready = poll_events(true, now)) return ready;
    if (last || runtime_.parker.counts().awake() <= 1) return nullptr;
    // A victim may need this processor to make progress.
    if (runtime_.threads.crowded()) {
      std::this_thread::yield();
    } else {
      for (int i = 0; i < 64; ++i) cpu_relax();
    }
    const std::int64_t before = std::exchange(now, now_ns());
    pace_.add_idle_time(now - before);
  }
}

// One turn of the event loop without blocking. Null, without a poll, if another worker polls it or sleeps in it.
job* scheduler::poll_events(bool run_first, std::int64_t now) noexcept {
  pace_.on_poll(now);
  if (!runtime_.parker.try_acquire_poller(*this)) return nullptr;
  event_list ready;
  runtime_.loop->poll(ready);
  runtime_.parker.release_poller();
  counters().polls.add();
  return distribute(ready, run_first);
}

// Makes the fibers of the events runnable, in their order, in this worker's woken deque, where thieves take half of
// them. Those that have no room go to the shared queue, with all behind them. If woken fibers are there already, all go
// there. Otherwise those would be overtaken by each later turn of the event loop. With `run_first` the first is
// returned to run at once, so no other worker is woken for a single event.
job* scheduler::distribute(event_list& ready, bool run_first) noexcept {
  if (ready.empty()) return nullptr;
  counters().events.add(ready.size());
  const auto next = [&]() -> task& {
    task& woken = task_of(*ready.pop());
    if (runtime_.trace.is_recording()) stamp_runnable(woken);
    return woken;
  };
  job* first = nullptr;
  if (run_first) first = &next();
  if (ready.empty()) return first;
  intrusive_queue<job> surplus;
  bool behind = runtime_.injected.has_woken();
  while (!ready.empty()) {
    task& woken = next();
    behind = behind || !queues.push_woken(woken);
    if (behind) surplus.push(woken);
  }
  if (!surplus.empty()) runtime_.injected.push(surplus, priority::woken);
  runtime_.parker.notify();
  return first;
}

// The user's hook gets the sleep as a function, which it must call once.
scheduler::outcome scheduler::sleep() {
  if (!runtime_.options.on_thread_idle) return runtime_.parker.park(*this);
  struct {
    scheduler& self;
    outcome ended;
  } call{*this, {}};
  runtime_.options.on_thread_idle(
      [](void* data) {
        auto& here = *static_cast<decltype(call)*>(data);
        here.ended = here.self.runtime_.parker.park(here.self);
      },
      &call);
  return call.ended;
}

// The end of the search: checks all queues once more, with the sleep announced, and sleeps (parker.hpp). It sleeps on
// the worker's condition variable, or in the event loop, and then brings the events that have ended the sleep. Returns
// a fiber of those; null if the worker was woken, which makes it a searcher, or has seen work. `stopping`: it must end.
job* scheduler::park(bool& stopping) noexcept {
  event_list ready;
  ready_ = &ready;
  if (runtime_.monitor.any_starved()) give_stacks_back();  // others need them
  activity.running.set(nullptr);
  if (traced()) record(trace_kind::park);
  const std::int64_t asleep = now_ns();
  victims_.out_of_work(asleep);
  const outcome ended = sleep();
  ready_ = nullptr;
  if (traced()) record(trace_kind::unpark);
  counters().parks.add();
  set_running(nullptr);
  const std::int64_t now = now_ns();
  pace_.set_time(now);
  pace_.add_idle_time(now - asleep);
  if (ended == outcome::polled) pace_.on_poll(now);
  announce_if_due(now);
  stopping = ended == outcome::stopping;
  job* first = nullptr;
  if (!ready.empty()) {
    // A worker that has slept in the loop comes back as a searcher, and has found work.
    runtime_.parker.end_search(*this, eager());
    first = distribute(ready, true);
    if (first) runtime_.parker.pass_poller_on(eager());
  }
  return first;
}

// Called by the parker, on the thread of the worker that watches the event loop.
void runtime_state::sleep_in_loop(worker_slot& worker_slot) noexcept {
  auto& sleeper = static_cast<scheduler&>(worker_slot);
  loop->wait(*sleeper.ready_);
  sleeper.counters().polls.add();
}

}  // namespace ulexite::detail
