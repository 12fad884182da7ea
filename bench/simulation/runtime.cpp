#include "runtime.hpp"

#include <algorithm>
#include <utility>

namespace simulation {

runtime::runtime(std::size_t workers, const costs& machine, workload& load, std::uint64_t seed)
    : cost(machine),
      load_(load),
      outside_(workers, workers + 1, seed),
      injected_lock_(clock, cost),
      parker_(clock, cost),
      idle_(workers + 1) {
  for (std::size_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<worker>(i, workers + 1, seed));
}

void runtime::run() {
  for (auto& w : workers_) clock.start(loop(*w));
  load_.begin(*this);
  clock.run();
}

void runtime::finish() {
  finished = clock.now();
  clock.stop();
}

runtime::shares runtime::utilisation() const {
  const double time = static_cast<double>(std::max<ns>(finished - began, 1));
  const auto share = [&](ns busy) { return static_cast<double>(busy) / time; };
  ns ring = 0;
  for (auto& w : workers_) ring = std::max(ring, w->queues.busy());
  return {share(injected_lock_.busy()),
          share(parker_.busy()),
          share(idle_.busy()),
          share(fences_busy_),
          share(loop_busy_),
          share(ring),
          share(source_busy)};
}

// ---- what fibers do ----

process runtime::compute(worker& here, ns time) {
  counted.work += time;
  co_await clock.delay(time + std::exchange(here.debt, 0));
  co_return 0;
}

process runtime::add(worker& here, fiber spawned) {
  ++here.spawned;
  co_await push(here, spawned);
  co_return 0;
}

// Without the pause of 16 pushes between two looks at the clock.
process runtime::push(worker& here, fiber runnable) {
  co_await push_ring(here, runnable);
  here.has_suppressed_pushes = !here.push_wakes.over(clock.now() + here.debt);
  if (!here.has_suppressed_pushes) co_await announce_pushes(here);
  co_return 0;
}

process runtime::announce_pushes(worker& here) {
  here.debt += cost.locked + idle_.read(here.index, clock.now() + here.debt, cost.line, 0);
  here.push_wakes.on_wake(clock.now() + here.debt, here.thefts);
  if (searching_ == 0 && sleeping_ > 0) co_await wake_one(here);
  co_return 0;
}

process runtime::wake(worker& here, fiber woken) {
  const fiber displaced = std::exchange(here.slot, woken);
  if (displaced != none) co_await push(here, displaced);
  if (displaced == none && here.slot_due) co_await announce_slot(here);
  co_return 0;
}

process runtime::announce_slot(worker& here) {
  here.slot_due = false;
  here.debt += idle_.read(here.index, clock.now() + here.debt, cost.line, 0);
  if (searching_ > 0 || sleeping_ == 0) co_return 0;
  here.slot_wakes.on_wake(clock.now() + here.debt, here.thefts);
  co_await wake_one(here);
  co_return 0;
}

process runtime::offer(worker& here, fiber forked) {
  const bool first = here.forks.empty();
  here.forks.push_back(forked);  // none of the workloads has a thousand of them on a worker
  here.debt += cost.fork + here.queues.write_own(cost, here.index, clock.now() + here.debt);
  if (first) co_await announce_forks(here);
  co_return 0;
}

process runtime::try_pop(worker& here) {
  if (here.forks.empty()) co_return none;
  here.debt += here.queues.write_own(cost, here.index, clock.now() + here.debt);
  const fiber youngest = here.forks.back();
  here.forks.pop_back();
  co_return youngest;
}

process runtime::inject(fiber runnable) {
  co_await injected_lock_.lock(outside_.index);
  co_await clock.delay(cost.queued);
  injected_.push_back({runnable, outside_.index});
  injected_lock_.unlock();
  co_await notify(outside_);
  co_await settle(outside_);
  co_return 0;
}

// ---- scheduler.cpp ----

process runtime::push_ring(worker& here, fiber runnable) {
  here.debt += here.queues.write_own(cost, here.index, clock.now() + here.debt);
  if (here.ring.size() < ring_size) {
    here.ring.push_back(runnable);
    ++here.came;
    co_return 0;
  }
  std::vector<fiber> evicted(here.ring.begin(), here.ring.begin() + ring_overflow);
  here.ring.erase(here.ring.begin(), here.ring.begin() + ring_overflow);
  evicted.push_back(runnable);
  ++counted.overflows;
  co_await settle(here);
  co_await injected_lock_.lock(here.index);  // the whole list is moved together
  co_await clock.delay(cost.queued);
  for (const fiber f : evicted) injected_.push_back({f, here.index});
  injected_lock_.unlock();
  co_return 0;
}

fiber runtime::next_local(worker& here) {
  if (here.until_maintenance == 0) return none;
  --here.until_maintenance;
  if (here.slot != none) {
    if (here.slot_streak >= slot_streak_limit && here.may_have_work()) return none;
    ++here.slot_streak;
    return std::exchange(here.slot, none);
  }
  here.slot_streak = 0;
  if (here.ring.empty()) return none;
  here.debt += here.queues.write_own(cost, here.index, clock.now() + here.debt);
  const fiber mine = here.ring.front();
  here.ring.pop_front();
  return mine;
}

process runtime::loop(worker& here) {
  for (;;) {
    fiber chosen = co_await next(here);
    if (chosen == none) chosen = co_await search(here);
    if (chosen == none) chosen = co_await park(here);
    if (chosen == none) continue;
    co_await end_search(here, here.eager);
    while (chosen != none) {
      ++counted.dispatches;
      ++here.dispatches;
      if (!std::exchange(here.ran, true)) all_ran = clock.now();
      here.debt += cost.dispatch + std::exchange(here.arriving, 0);
      co_await load_.run(*this, here, chosen);
      co_await settle(here);
      chosen = next_local(here);
    }
  }
}

// ---- parker.hpp ----

void runtime::write_idle(worker& here) { here.debt += idle_.write(cost, here.index, clock.now() + here.debt); }

process runtime::notify(worker& here) {
  here.debt += cost.locked + idle_.read(here.index, clock.now() + here.debt, cost.line, 0);
  if (searching_ > 0 || sleeping_ == 0) co_return 0;
  co_await wake_one(here);
  co_return 0;
}

process runtime::announce_forks(worker& here) {
  here.debt += idle_.read(here.index, clock.now() + here.debt, cost.line, 0);
  if (searching_ > 0 || sleeping_ == 0) co_return 0;
  co_await wake_one(here);
  co_return 0;
}

process runtime::wake_one(worker& here) {
  co_await settle(here);
  co_await parker_.lock();
  if (searching_ == 0 && sleeping_ > 0 && (!sleepers_.empty() || in_loop_)) {
    const bool loop = sleepers_.empty();
    worker& chosen = loop ? *in_loop_ : *sleepers_.back();
    loop ? void(in_loop_ = nullptr) : sleepers_.pop_back();
    --sleeping_;
    ++searching_;
    ++counted.wakes;
    chosen.notified = true;
    write_idle(here);
    co_await settle(here);
    if (!loop && chosen.asleep) clock.schedule(std::exchange(chosen.asleep, {}), cost.wake_latency);
    if (!loop) co_await clock.delay(cost.wake_cost);  // under the lock
    co_await parker_.unlock();
    if (!loop) co_return 0;
    wake_loop();
    co_await clock.delay(cost.wake_cost);
    co_return 0;
  }
  co_await parker_.unlock();
  co_return 0;
}

process runtime::end_search(worker& here, bool eager) {
  if (!here.searching) co_return 0;
  co_await settle(here);
  here.searching = false;
  write_idle(here);
  if (--searching_ > 0) co_return 0;
  if (any_work(here) || (eager && nobody_polls())) co_await wake_one(here);
  co_return 0;
}

bool runtime::any_work(worker& here) {
  if (!injected_.empty()) return true;
  for (auto& w : workers_) {
    here.debt += w.get() == &here ? 0 : look_at(here, *w);
    if (w->may_have_work()) return true;
  }
  return false;
}

process runtime::park(worker& here) {
  co_await settle(here);
  co_await parker_.lock();
  if (std::exchange(here.searching, false)) --searching_;
  ++sleeping_;
  write_idle(here);
  const bool work = any_work(here);
  co_await settle(here);
  if (work) {
    --sleeping_;
    ++searching_;
    here.searching = true;
    write_idle(here);
    co_await settle(here);
    co_await parker_.unlock();
    co_return none;
  }
  ++counted.parks;
  if (poller_) {
    sleepers_.push_back(&here);
    // It sleeps from here on: a waker that comes while the unlock wakes another finds it in the list, and is kept.
    co_await parker_.unlock();
    const ns asleep = clock.now();
    if (!here.notified) co_await leave_handle_in{here.asleep};
    here.idle += clock.now() - asleep;
    co_await parker_.lock();
    here.notified = false;
    here.searching = true;
    co_await parker_.unlock();
    co_return none;
  }
  poller_ = in_loop_ = &here;
  co_await parker_.unlock();
  const ns asleep = clock.now();
  if (ready_.empty() && !loop_woken_) co_await leave_handle_in{here.asleep};
  here.idle += clock.now() - asleep;
  here.asleep = {};
  loop_woken_ = false;
  std::vector<fiber> ready = take_ready();
  const ns took = cost.poll + static_cast<ns>(ready.size()) * cost.event;
  loop_busy_ += took;
  co_await clock.delay(took);
  ++counted.polls;
  here.polled = true;
  co_await parker_.lock();
  poller_ = nullptr;
  if (std::exchange(here.notified, false)) {
    here.searching = true;
  } else {
    in_loop_ = nullptr;
    --sleeping_;
    write_idle(here);
    co_await settle(here);
  }
  co_await parker_.unlock();
  if (ready.empty()) co_return none;
  co_await end_search(here, here.eager);
  const fiber first = co_await distribute(here, std::move(ready), true);
  if (first != none && here.eager && nobody_polls()) co_await wake_one(here);
  co_return first;
}

// The loop's eventfd is sticky.
void runtime::wake_loop() {
  if (loop_woken_) return;
  loop_woken_ = true;
  if (poller_ && poller_->asleep) clock.schedule(std::exchange(poller_->asleep, {}), cost.wake_latency);
}

void runtime::event(fiber waiter) {
  ready_.push_back(waiter);
  if (poller_ && poller_->asleep) clock.schedule(std::exchange(poller_->asleep, {}), cost.wake_latency);
}

}  // namespace simulation
