// The simulated runtime/worker/search.cpp: the steps of a worker when its own queues are empty, and at maintenance.

#include "runtime.hpp"

#include <algorithm>
#include <utility>

namespace simulation {
namespace {

constexpr std::size_t events_per_turn = 4096;  // libevent's most

}  // namespace

process runtime::next(worker& here) {
  if (here.until_maintenance == 0) {
    const fiber due = co_await maintenance(here);
    if (due != none) co_return due;
  }
  if (here.slot != none && here.slot_streak >= slot_streak_limit && here.may_have_work()) {
    here.slot_streak = 0;
    co_await push(here, std::exchange(here.slot, none));
  }
  const fiber mine = next_local(here);
  if (mine != none) co_return mine;
  co_return co_await take_injected(here, inject_batch);
}

process runtime::maintenance(worker& here) {
  co_await settle(here);
  const ns now = clock.now();
  here.eager = is_eager(now - here.last_maintenance - here.idle, here.dispatches_per_maintenance);
  here.idle = 0;
  const ns fitting = poll_interval * here.dispatches_per_maintenance / std::max<ns>(now - here.last_maintenance, 1);
  const ns most = std::min(2 * here.dispatches_per_maintenance, most_dispatches_per_maintenance);
  here.dispatches_per_maintenance = static_cast<unsigned>(std::clamp<ns>(fitting, 1, most));
  here.until_maintenance = here.dispatches_per_maintenance;
  here.last_maintenance = now;
  here.slot_due = size() > 1 && here.slot_wakes.over(now);
  if (here.eager) here.push_wakes.end();
  if (here.has_suppressed_pushes && here.push_wakes.over(now)) {
    here.has_suppressed_pushes = false;
    if (here.may_have_work()) co_await announce_pushes(here);
  }
  const bool polled = std::exchange(here.polled, false);
  if (!polled && now - here.last_poll >= poll_interval) {
    here.last_poll = now;
    co_await poll_events(here, false);
    here.polled = false;
    if (here.eager && nobody_polls()) co_await wake_one(here);
  }
  const auto share = static_cast<std::size_t>(co_await maintenance_share(here));
  co_return co_await take_injected(here, share);
}

process runtime::maintenance_share(worker& here) {
  const std::size_t others = injected_.size() / size() + 1, all = here.ring.size() + others;
  const std::size_t count = (std::min(here.came, inject_batch) * others + all - 1) / all;
  if (injected_.empty() || all <= ring_size || count == 0 || here.ring.size() < 2 * count) co_return maintenance_batch;
  const auto newest = here.ring.end() - static_cast<std::ptrdiff_t>(count);
  const std::vector<fiber> moved(newest, here.ring.end());
  here.ring.erase(newest, here.ring.end());
  co_await settle(here);
  co_await injected_lock_.lock(here.index);
  co_await clock.delay(cost.queued);
  for (const fiber f : moved) injected_.push_back({f, here.index});
  injected_lock_.unlock();
  co_await notify(here);
  co_return static_cast<fiber>(count);
}

process runtime::take_injected(worker& here, std::size_t most) {
  if (injected_.empty()) co_return none;
  const std::size_t count = std::min(most, injected_.size() / size() + 1);
  co_await settle(here);
  co_await injected_lock_.lock(here.index);
  std::vector<fiber> taken;
  for (; taken.size() < count && !injected_.empty(); injected_.pop_front()) {
    taken.push_back(injected_.front().which);
    here.arriving += injected_.front().from == here.index ? 0 : cost.transfer;
  }
  co_await clock.delay(static_cast<ns>(taken.size()) * cost.queued);
  injected_lock_.unlock();
  if (taken.empty()) co_return none;
  for (std::size_t i = 1; i < taken.size(); ++i) co_await push_ring(here, taken[i]);
  here.came = 0;
  if (taken.size() > 1) co_await notify(here);
  co_return taken.front();
}

// The time of a look at another's ring and forks.
ns runtime::look_at(worker& here, worker& victim) {
  ++counted.probes;
  return victim.queues.read(here.index, clock.now() + here.debt, cost.probe, cost.probe_same);
}

process runtime::steal(worker& here, bool slots_too) {
  const std::size_t start = here.seen.first(size());
  for (std::size_t i = 0; i < size(); ++i) {
    worker& victim = *workers_[(start + i) % size()];
    if (&victim == &here) continue;
    here.debt += look_at(here, victim);
    const bool pays = serves_slowly(here, victim);
    const bool some = !victim.forks.empty() || (pays && !victim.ring.empty());
    fiber stolen = some ? co_await steal_from(here, victim, pays) : none;
    if (stolen == none && pays && slots_too && victim.slot != none) {
      slots_too = false;
      stolen = co_await steal_slot(here, victim);
    }
    if (stolen == none) continue;
    ++counted.steals;
    ++victim.thefts;
    here.debt += cost.steal;
    co_return stolen;
  }
  co_return none;
}

bool runtime::serves_slowly(worker& here, worker& victim) {
  const ns now = clock.now() + here.debt;
  return here.seen.may_look(victim.index, now, 0) &&
         here.seen.look(victim.index,
                        {static_cast<std::uint32_t>(victim.dispatches), static_cast<std::uint32_t>(victim.spawned)},
                        victim.ring.size(), now) == ulexite::detail::victims::worth::all;
}

// Half of the ring, if fibers are wanted, or one branch of a fork. A thread that arrives while another takes waits for
// the line.
process runtime::steal_from(worker& thief, worker& victim, bool fibers) {
  co_await settle(thief);  // or the victim would wait for a line that is taken after a long search only
  if (victim.forks.empty() && !(fibers && !victim.ring.empty())) co_return none;
  if (!fibers || victim.ring.empty()) co_await heavy_fence(thief);
  thief.debt += victim.queues.write(cost, thief.index, clock.now() + thief.debt);
  co_await settle(thief);
  fiber stolen = none;
  if (fibers && !victim.ring.empty()) {
    const std::size_t wanted = victim.ring.size() - victim.ring.size() / 2;
    const std::size_t count = std::min(wanted, ring_size - thief.ring.size() + 1);
    stolen = victim.ring.front();
    victim.ring.pop_front();
    for (std::size_t i = 1; i < count; ++i, victim.ring.pop_front()) thief.ring.push_back(victim.ring.front());
    thief.debt += thief.queues.write_own(cost, thief.index, clock.now());
    thief.arriving += static_cast<ns>(count) * cost.transfer;
    counted.stolen += static_cast<std::int64_t>(count);
  } else if (!victim.forks.empty()) {
    stolen = victim.forks.front();
    victim.forks.pop_front();
    thief.arriving += cost.transfer + cost.spawn;  // it becomes a fiber
    ++counted.stolen;
  }
  co_return stolen;
}

// Only if the victim dispatches nothing for 128 pauses.
process runtime::steal_slot(worker& thief, worker& victim) {
  thief.debt += cost.line;
  co_await settle(thief);
  const std::uint64_t before = victim.dispatches;
  co_await clock.delay(cost.spin_pause);
  if (victim.slot == none || victim.dispatches != before) co_return none;
  co_await heavy_fence(thief);
  if (victim.slot == none) co_return none;
  thief.debt += cost.line;
  thief.arriving += cost.transfer;
  ++counted.stolen;
  co_return std::exchange(victim.slot, none);
}

// Interrupts all that run; the kernel lets one at a time do that.
process runtime::heavy_fence(worker& here) {
  co_await settle(here);
  const ns took = cost.fence + static_cast<ns>(awake() - 1) * cost.fence_each;
  fence_free_at_ = std::max(fence_free_at_, clock.now()) + took;
  for (auto& w : workers_) w->debt += w.get() == &here || w->asleep ? 0 : cost.interrupt;
  co_await clock.delay(fence_free_at_ - clock.now());
  fences_busy_ += took;
  co_return 0;
}

process runtime::take_from_others(worker& here, bool slots_too) {
  const fiber injected = co_await take_injected(here, inject_batch);
  if (injected != none) co_return injected;
  co_return co_await steal(here, slots_too);
}

process runtime::search(worker& here) {
  co_await settle(here);
  if (awake() <= 1) co_return co_await take_injected(here, inject_batch);
  if (!here.searching) {
    if (2 * searching_ >= awake()) co_return none;
    ++searching_;
    here.searching = true;
    write_idle(here);
  }
  co_await settle(here);
  const ns start = clock.now();
  here.seen.out_of_work(start);
  for (;;) {
    const ns passed = clock.now() - start;
    const bool last = passed >= cost.search_time;
    fiber found = co_await take_from_others(here, last);
    if (found == none) found = co_await poll_events(here, true);
    if (found != none) co_return found;
    if (last || awake() <= 1) co_return none;
    here.debt += cost.pause;
    co_await settle(here);
    here.idle += clock.now() - start - passed;
  }
}

std::vector<fiber> runtime::take_ready() {
  const auto end = ready_.begin() + static_cast<std::ptrdiff_t>(std::min(ready_.size(), events_per_turn));
  std::vector<fiber> taken(ready_.begin(), end);
  ready_.erase(ready_.begin(), end);
  return taken;
}

process runtime::poll_events(worker& here, bool run_first) {
  if (poller_) co_return none;
  poller_ = &here;
  co_await settle(here);
  std::vector<fiber> ready = take_ready();
  const ns took = cost.poll + cost.line + static_cast<ns>(ready.size()) * cost.event;
  loop_busy_ += took;
  co_await clock.delay(took);
  poller_ = nullptr;
  here.polled = true;
  ++counted.polls;
  co_return co_await distribute(here, std::move(ready), run_first);
}

// All stay here, where others can steal them. That what was woken goes before what is fresh is not modelled: it changes
// the order of the fibers, not the number of steps.
process runtime::distribute(worker& here, std::vector<fiber> ready, bool run_first) {
  if (ready.empty()) co_return none;
  std::size_t i = 0;
  const fiber first = run_first ? ready[i++] : none;
  if (i == ready.size()) co_return first;
  for (; i < ready.size(); ++i) co_await push_ring(here, ready[i]);
  co_await notify(here);
  co_return first;
}

}  // namespace simulation
