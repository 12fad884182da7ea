#include <ulexite/base/panic.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/scheduler.hpp>
#include <ulexite/runtime/suspend.hpp>
#include <ulexite/runtime/waiting_event.hpp>

#include <algorithm>

namespace ulexite::detail {
namespace {

constexpr unsigned operations_per_look = 16;
constexpr unsigned looks_per_quantum = 8;  // 128 operations
constexpr unsigned dispatches_per_visit = 61;
constexpr unsigned slot_streak_limit = 3;
constexpr std::int64_t poll_interval = 100'000;     // ns
constexpr std::int64_t search_time = 30'000;        // ns: about what it costs to sleep and be woken
constexpr std::int64_t longest_patience = 100'000;  // ns
constexpr std::int64_t transfer_cost = 300;         // ns: of one fiber to another core and its memory back
constexpr std::size_t smallest_batch = 8;
constexpr unsigned stacks_kept = 16;
constexpr std::size_t inject_batch = 128;
constexpr std::size_t ring_overflow = 128;
constexpr std::size_t events_kept = 8;

}  // namespace

scheduler::scheduler(core& home, std::size_t index) noexcept
    : home_(home), index_(index), random_(reinterpret_cast<std::uintptr_t>(this) + index) {}

std::uint64_t scheduler::take_ids(std::uint64_t count) noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);  // counter
}

// ---- publishing ----

// A full ring moves its oldest, and the newcomer behind them, to the queue that all share.
void scheduler::push_ring(job& runnable) noexcept {
  while (!ring_.push(runnable)) {
    intrusive_queue<job> evicted;
    if (!ring_.evict<ring_overflow>([&](job& old) { evicted.push(old); })) continue;
    evicted.push(runnable);
    last_theft_ = {};  // the work is this worker's own now
    counters.overflows.add();
    home_.injected.push(evicted);
    return;
  }
}

// To be called after each publication. A lone worker is awake, and there is no other to wake.
void scheduler::announce() noexcept {
  if (!home_.alone) home_.parker.notify();
}

void scheduler::add(job& runnable) noexcept {
  perturb();
  push_ring(runnable);
  announce();
}

void scheduler::add_job(job& job) noexcept {
  perturb();
  push_job(job);
  announce();
}

void scheduler::push_job(job& job) noexcept {
  if (!jobs_.push(job)) home_.injected.push(job);
  jobs_empty_ = false;
}

void scheduler::add_jobs(intrusive_queue<job>& jobs) noexcept {
  perturb();
  jobs_empty_ = false;
  while (job* const job = jobs.pop()) {
    if (jobs_.push(*job)) continue;
    home_.injected.push(*job);
    home_.injected.push(jobs);
  }
  home_.parker.notify();
}

// The woken fiber runs next here; whoever was to run next waits its turn, where others can take it. No other worker is
// woken for the former: this one will take it at once, and if not, the monitor sees to it.
void scheduler::wake(task& woken) noexcept {
  perturb();
  if (!has_slot()) {
    slot_.store(&woken, std::memory_order_release);  // A
    return;
  }
  if (job* const displaced = slot_.exchange(&woken, std::memory_order_acq_rel)) add(*displaced);  // A
}

// ---- switching ----

stack_pool& scheduler::pool_for(const job& runnable) const noexcept {
  if (!fiber::is_fiber(runnable)) return home_.stacks;
  const std::size_t wanted = static_cast<const task&>(runnable).wanted_stack;
  return wanted == 0 ? home_.stacks : stack_pool::of_size(wanted);
}

stack* scheduler::take_stack(stack_pool& pool) noexcept {
  if (&pool != &home_.stacks) return pool.take();
  if (!stacks_) {
    stacks_ = pool.take(stacks_kept / 2);
    if (!stacks_) return nullptr;
    stack_count_ = 0;
    for (stack* s = stacks_; s; s = s->next) ++stack_count_;
  }
  stack* const taken = stacks_;
  stacks_ = taken->next;
  --stack_count_;
  return taken;
}

void scheduler::recycle(stack& left, stack_pool& pool) noexcept {
  forget_context(left);
  if (&pool != &home_.stacks || left.canary) {
    left.next = nullptr;
    pool.give(&left);
    return;
  }
  left.next = stacks_;
  stacks_ = &left;
  if (++stack_count_ <= stacks_kept) return;
  stack* last_kept = stacks_;
  for (unsigned i = 1; i < stacks_kept / 2; ++i) last_kept = last_kept->next;
  stack* const surplus = std::exchange(last_kept->next, nullptr);
  stack_count_ = stacks_kept / 2;
  pool.give(surplus);
}

void scheduler::set_running(task* next) noexcept {
  current_ = next;
  whereabouts_->agent = next ? &next->agent() : nullptr;
}

void scheduler::begin_quantum(task* next) noexcept {
  set_running(next);
  if (next) next->agent().budget = operations_per_look;
  looks_ = 0;
  hogged_.store(false, std::memory_order_relaxed);  // hint
  counters.dispatches.add();
}

bool scheduler::budget_is_spent() noexcept {
  current_->agent().budget = operations_per_look;
  return ++looks_ == looks_per_quantum || hogged_.load(std::memory_order_relaxed);  // hint
}

// Can `next` run on a stack of `pool` from its beginning?
bool scheduler::starts_on(const job& next, const stack_pool& pool) const noexcept {
  // ThreadSanitizer takes all that runs on one stack for one thread of execution, and would miss races between fibers.
  if (ULEXITE_TSAN) return false;
  if (fiber::is_fiber(next) && static_cast<const task&>(next).state.phase() != fiber_phase::fresh) return false;
  return &pool_for(next) == &pool;
}

// Leaves `from` for `next`, or for the main stack if that is null. What the successor must do about the computation
// left behind is in departed_.
[[gnu::always_inline]] inline void scheduler::leave(context& from, job* next, departure departure) noexcept {
  perturb();
  switch_thread* arrived = nullptr;
  if (next && fiber::is_fiber(*next) && static_cast<task*>(next)->state.phase() != fiber_phase::fresh) {
    task& resumed = *static_cast<task*>(next);
    if (!resumed.state.resume())
      panic("fiber #%llu was resumed while %s", static_cast<unsigned long long>(resumed.id),
            to_string(resumed.state.phase()));
    begin_quantum(&resumed);
    arrived = &switch_context(from, resumed.saved, *this, departure);
  } else if (stack* fresh = nullptr; next && (fresh = take_stack(pool_for(*next)))) {
    launching_ = next;
    launch_stack_ = fresh;
    arrived = &start_context(from, *fresh, ++colour_, stack_main, *this, departure);
  } else {
    if (next) {  // the machine refuses memory for a stack: the fiber waits for one that another gives back
      counters.stacks_refused.add();
      if (&from == &main_) {
        home_.injected.push(*next);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      home_.injected.push(*next);
    }
    set_running(nullptr);
    arrived = &switch_context(from, main_, *this, departure);
  }
  if (departure == departure::returns) static_cast<scheduler*>(arrived)->complete_switch();
}

// What could not be done on the stack that was left: only now may others see the fiber that stood on it.
void scheduler::complete_switch() noexcept {
  perturb();
  switch (std::exchange(departed_.what, departed::nothing)) {
    case departed::nothing: return;
    case departed::waiting: return complete_wait(*departed_.who, departed_.held);
    case departed::yielding:
      departed_.who->state.saved();
      add(*departed_.who);
      return;
    case departed::ended: return recycle(*departed_.stood_on, *departed_.pool);
  }
}

void scheduler::complete_wait(task& who, spin_lock* held) noexcept {
  who.state.saved();
  const bool waits = who.agent().word.commit(departed_.prepared, departed_.cancellable);
  // From here on the fiber may run, and end, elsewhere, unless its wait is over already.
  if (held) held->unlock();
  if (!waits) add(who);
}

wake_reason scheduler::suspend(spin_lock* held, bool prepared, bool cancellable) noexcept {
  task& self = *current_;
  departed_.what = departed::waiting;
  departed_.who = &self;
  departed_.held = held;
  departed_.prepared = prepared;
  departed_.cancellable = cancellable;
  leave(self.saved, next_local(), departure::returns);
  return self.agent().word.reason();
}

void scheduler::yield() noexcept {
  job* const next = next_local();
  if (!next && until_housekeeping_ != 0 && !has_slot()) {  // alone
    begin_quantum(current_);
    return;
  }
  task& self = *current_;
  departed_.what = departed::yielding;
  departed_.who = &self;
  leave(self.saved, next, departure::returns);
}

// The bottom of every stack but the threads' own: runs one fresh fiber or job after the other, until the next to run is
// none. A fiber that suspends keeps the stack, and this function with it.
void scheduler::stack_main(switch_thread& thread) {
  auto* here = static_cast<scheduler*>(&thread);
  stack& standing = *here->launch_stack_;
  job* next = here->launching_;
  stack_pool& pool = here->pool_for(*next);
  here->complete_switch();
  for (;;) {
    if (fiber::is_fiber(*next)) {
      task& started = *static_cast<task*>(next);
      if (!started.state.start())
        panic("fiber #%llu was started while %s", static_cast<unsigned long long>(started.id),
              to_string(started.state.phase()));
      started.standing = &standing;
      standing.owner.store(&started, std::memory_order_release);  // pairs with the overflow handler's load
      here->begin_quantum(&started);
      started.run_here();
    } else {
      here->begin_quantum(nullptr);
      next->run(next);
    }
    here = this_scheduler();
    here->set_running(nullptr);
    next = here->next_local();
    if (!next || !here->starts_on(*next, pool)) break;
    here->counters.starts_in_place.add();
  }
  here->departed_.what = departed::ended;
  here->departed_.stood_on = &standing;
  here->departed_.pool = &pool;
  context unneeded;
  here->leave(unneeded, next, departure::final);
}

// ---- what to run next ----

// The next of this worker's own queues, or null when the main stack must see to it: nothing is left here, or something
// is due that takes locks or time. Called with a wait's lock held, so it must stay short.
job* scheduler::next_local() noexcept {
  if (until_housekeeping_ == 0) return nullptr;
  --until_housekeeping_;
  if (has_slot()) {
    if (slot_streak_ >= slot_streak_limit && may_have_work()) return nullptr;
    if (job* const woken = take_own_slot()) {
      ++slot_streak_;
      return woken;
    }
  }
  slot_streak_ = 0;
  return next_queued();
}

// Fibers and jobs take turns, so that neither kind starves the other.
job* scheduler::next_queued() noexcept {
  jobs_turn_ = !jobs_turn_;
  const auto pop_ring = [this] {
    prefetch_ring();
    return home_.alone ? ring_.pop_top_alone() : ring_.pop_top();
  };
  if (jobs_turn_ && !jobs_empty_) {
    if (job* const mine = jobs_.pop_bottom()) return mine;
    jobs_empty_ = true;
  }
  if (job* const mine = pop_ring()) return mine;
  if (jobs_empty_) return nullptr;
  job* const mine = jobs_.pop_bottom();
  jobs_empty_ = !mine;
  return mine;
}

// With a thousand fibers taking turns, what a dispatch costs is the way of their memory to the first cache. So the
// block of the fiber after the next is fetched ahead, and the top of the stack of the next, whose block is here by now.
// The ring holds fibers only, and their blocks are never unmapped, so a stale hint does no harm.
void scheduler::prefetch_ring() noexcept {
#if !ULEXITE_TSAN
  __builtin_prefetch(ring_.hint(2));
  if (const auto* const next = static_cast<const task*>(ring_.hint(1))) {
    const auto* const frame = static_cast<const char*>(next->saved.frame);
    __builtin_prefetch(frame);
    __builtin_prefetch(frame + cache_line);
  }
#endif
}

job* scheduler::take_own_slot() noexcept {
  if (!home_.alone) return take_slot();
  job* const woken = slot_.load(std::memory_order_relaxed);  // owner-written: nobody else empties it
  slot_.store(nullptr, std::memory_order_relaxed);           // owner-written
  return woken;
}

// The main stack's choice, which never blocks either.
job* scheduler::next() noexcept {
  if (until_housekeeping_ == 0)
    if (job* const due = housekeeping()) return due;
  if (has_slot() && slot_streak_ >= slot_streak_limit && may_have_work()) {
    slot_streak_ = 0;
    if (job* const patient = take_own_slot()) add(*patient);
  }
  if (job* const mine = next_local()) return mine;
  return last_theft_.patience == 0 && last_theft_.count < smallest_batch ? take_injected(inject_batch) : nullptr;
}

// Every so many dispatches: the event loop gets its turn, the shared queue too, and a victim that does not get on.
job* scheduler::housekeeping() noexcept {
  const std::int64_t now = now_ns();
  pace(now);
  if (now - last_poll_ >= poll_interval) {
    last_poll_ = now;
    poll_events(false);
    if (eager() && home_.parker.nobody_polls()) home_.parker.wake_one();
  }
  if (job* const injected = take_injected(8)) return injected;
  return probe_stuck_victim();
}

// As many dispatches to the next visit as fit into a poll interval, by the last one's measure.
void scheduler::pace(std::int64_t now) noexcept {
  const std::int64_t elapsed = std::max<std::int64_t>(now - last_visit_, 1);
  const std::int64_t fitting = poll_interval * quanta_per_visit_ / elapsed;
  quanta_per_visit_ = static_cast<unsigned>(std::clamp<std::int64_t>(fitting, 1, dispatches_per_visit));
  until_housekeeping_ = quanta_per_visit_;
  last_visit_ = now;
}

// Do fibers run so long that the event loop must not wait for this worker?
bool scheduler::eager() const noexcept { return quanta_per_visit_ <= 5; }

// A worker that did not dispatch between two of our looks at it is stuck in a long fiber: half of what waits behind
// that comes here. One that gets on is left alone.
job* scheduler::probe_stuck_victim() noexcept {
  const std::size_t others = home_.schedulers.size() - 1;
  if (others == 0) return nullptr;
  scheduler& victim = *home_.schedulers[watched_victim_];
  job* stolen = nullptr;
  if (&victim != this && victim.counters.dispatches.get() == watched_dispatches_) {
    stolen = victim.ring_.steal_half(ring_);
    if (stolen) {
      counters.steals.add();
      home_.parker.notify();
    }
  }
  watched_victim_ = (index_ + 1 + random_.below(static_cast<std::uint32_t>(others))) % home_.schedulers.size();
  watched_dispatches_ = home_.schedulers[watched_victim_]->counters.dispatches.get();
  return stolen;
}

// Up to `most` from the shared queue, of which this worker's share: the first is returned, the others go to the ring.
job* scheduler::take_injected(std::size_t most) noexcept {
  const std::size_t length = home_.injected.size();
  if (length == 0) return nullptr;
  intrusive_queue<job> taken;
  home_.injected.take(std::min(most, length / home_.workers + 1), taken);
  job* const first = taken.pop();
  if (!first) return nullptr;
  if (!taken.empty()) {
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
    job* stolen = victim.ring_.steal_half(ring_);
    if (!stolen) stolen = victim.jobs_.pop_top();
    if (!stolen && slots_too && victim.has_slot()) stolen = victim.take_slot();
    if (!stolen) continue;
    counters.steals.add();
    return stolen;
  }
  return nullptr;
}

// Fibers that end faster than they travel between cores are better left to the worker that made them. Whether they do
// shows in how soon after a theft of several this worker is out of work again. Then it waits before the next, longer
// each time; meanwhile it still is a searcher, so that nobody else is woken for them either.
void scheduler::judge_last_theft(std::int64_t now) noexcept {
  if (last_theft_.count < smallest_batch) return;
  const bool was_worth_it = now - last_theft_.time >= static_cast<std::int64_t>(last_theft_.count) * transfer_cost;
  last_theft_.patience =
      was_worth_it ? 0 : std::clamp<std::int64_t>(2 * last_theft_.patience, transfer_cost * 64, longest_patience);
  last_theft_.count = 0;
}

job* scheduler::take_from_others(bool slots_too) noexcept {
  const std::size_t before = ring_.size();
  job* const taken = take_injected(inject_batch);
  if (job* const first = taken ? taken : steal(slots_too)) {
    last_theft_.time = now_ns();
    last_theft_.count = ring_.size() - before + 1;
    return first;
  }
  return nullptr;
}

job* scheduler::search() noexcept {
  if (home_.parker.counts().awake() <= 1) return take_injected(inject_batch);  // nobody to steal from
  if (!home_.parker.begin_search(*this)) return nullptr;
  const std::int64_t start = now_ns();
  judge_last_theft(start);
  for (std::int64_t now = start;; now = now_ns()) {
    perturb();
    const bool last = now - start >= std::max(search_time, last_theft_.patience);
    if (now - start >= last_theft_.patience)
      if (job* const taken = take_from_others(last)) return taken;
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
  ready_ = &ready;
  job* const first = distribute(run_first);
  ready_ = nullptr;
  return first;
}

// Makes the fibers of the events runnable, in their order: the first eight here, the rest for all. With `run_first` the
// first is returned instead, to run at once, for which nobody need be woken.
job* scheduler::distribute(bool run_first) noexcept {
  if (!ready_ || ready_->empty()) return nullptr;
  counters.events.add(ready_->size());
  job* first = nullptr;
  if (run_first) first = &task_of(*ready_->pop());
  std::size_t kept = 0;
  intrusive_queue<job> surplus;
  while (event* const ready = ready_->pop()) {
    task& woken = task_of(*ready);
    if (kept < events_kept) {
      push_ring(woken);
      ++kept;
    } else {
      surplus.push(woken);
    }
  }
  if (!surplus.empty()) home_.injected.push(surplus);
  if (kept > 0) home_.parker.notify();
  return first;
}

job* scheduler::park(bool& stopping) noexcept {
  event_list ready;
  ready_ = &ready;
  busy_.store(false, std::memory_order_relaxed);  // hint
  const auto outcome = home_.parker.park(*this);
  counters.parks.add();
  busy_.store(true, std::memory_order_relaxed);  // hint
  stopping = outcome == detail::parker<core>::outcome::stopping;
  job* first = nullptr;
  if (outcome == detail::parker<core>::outcome::polled || !ready.empty()) {
    if (!ready.empty()) home_.parker.end_search(*this, eager());
    first = distribute(true);
  }
  ready_ = nullptr;
  return first;
}

void core::sleep_in_loop(seat& seat) noexcept {
  auto& sleeper = static_cast<scheduler&>(seat);
  loop->wait(*sleeper.ready_);
  sleeper.counters.polls.add();
}

void scheduler::run() noexcept {
  static_cast<switch_thread&>(*this) = switch_thread{};
  whereabouts_ = &this_thread_whereabouts();
  *whereabouts_ = {this, nullptr};
  searching = true;                              // whoever starts a worker makes it a searcher
  busy_.store(true, std::memory_order_relaxed);  // hint
  bool stopping = false;
  while (!stopping && !home_.ending()) {
    job* chosen = next();
    if (!chosen) chosen = search();
    if (!chosen) chosen = park(stopping);
    if (!chosen) continue;
    home_.parker.end_search(*this, eager());
    leave(main_, chosen, departure::returns);
  }
  busy_.store(false, std::memory_order_relaxed);  // hint
  home_.stacks.give(std::exchange(stacks_, nullptr));
  *whereabouts_ = {};
}

}  // namespace ulexite::detail
