#include <ulexite/base/error.hpp>
#include <ulexite/sync/select_case.hpp>

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

namespace ulexite::detail {
namespace {

using ending = select_case::ending;

// Fisher and Yates. One number has enough in it for the last eight choices, each of which uses up a part.
void shuffle(std::span<select_case*> cases) noexcept {
  std::uint32_t fraction = 0;
  for (std::size_t i = cases.size(); i > 1; --i) {
    if (i >= 8 || i == cases.size()) fraction = random_below(UINT32_MAX);
    const std::uint64_t choice = std::uint64_t{fraction} * i;
    std::swap(cases[i - 1], cases[choice >> 32]);
    fraction = static_cast<std::uint32_t>(choice);
  }
}

// The locks of all sources, each once, in the order that everybody takes them in.
class lock_set {
 public:
  lock_set(std::span<select_case*> cases, std::span<locked_source> room) noexcept {
    std::size_t count = 0;
    for (select_case* const each : cases)
      if (each->source) room[count++] = {each->source, each, nullptr};
    const auto all = room.first(count);
    std::ranges::sort(all, std::less<>(), &locked_source::source);
    const auto doubles = std::ranges::unique(all, {}, &locked_source::source);
    locks_ = all.first(count - doubles.size());
  }
  void lock(scheduler* worker) noexcept {
    for (locked_source& each : locks_) each.held = each.by->lock(worker);
  }
  void unlock() noexcept {
    for (const locked_source& each : locks_) each.held->unlock();
  }

 private:
  std::span<locked_source> locks_;
};

// Of one source; of none if `held` is null.
std::unique_lock<spin_lock> adopt(spin_lock* held) noexcept {
  return held ? std::unique_lock(*held, std::adopt_lock) : std::unique_lock<spin_lock>();
}

// The step in which each case is tried with nothing but its own lock held. None is passed over because its source is
// busy, or cases would not be in order, and one that others use all the time would have no turn.
select_case* try_each(std::span<select_case*> cases, scheduler* worker) {
  for (select_case* const each : cases) {
    deferred_resume wake(worker);
    const auto guard = adopt(each->lock(worker));
    if (each->attempt(wake.who)) return each;
  }
  return nullptr;
}

enum class sourced : bool { without_lock, with_lock };

void enter_all(std::span<select_case*> cases, agent& self, sourced which) noexcept {
  for (select_case* const each : cases)
    if (sourced(each->source != nullptr) == which) each->enter(self);
}

// The step in which all locks are held. Null: no case can be done, and if it may wait it stands in every queue.
select_case* try_or_enter_all(std::span<select_case*> cases, std::span<locked_source> locks, caller self,
                              bool may_wait) {
  deferred_resume wake(self.worker);
  lock_set all(cases, locks);
  all.lock(self.worker);
  const std::lock_guard guard(all, std::adopt_lock);
  for (select_case* const each : cases)
    if (each->attempt(wake.who)) return each;
  if (may_wait) {
    self.agent->word.prepare();
    enter_all(cases, *self.agent, sourced::with_lock);
  }
  return nullptr;
}

// Which case ended the wait, if a case did.
select_case* leave_all(std::span<select_case*> cases, ending& how) noexcept {
  scheduler* const worker = this_caller().worker;
  select_case* chosen = nullptr;
  for (select_case* const each : cases) {
    const auto guard = adopt(each->lock(worker));
    if (const ending mine = each->leave(); mine != ending::other) {
      chosen = each;
      how = mine;
    }
  }
  return chosen;
}

select_case* earliest(std::span<select_case*> cases) noexcept {
  return *std::ranges::min_element(cases, {}, &select_case::deadline);
}

// Null: to begin anew.
select_case* wait_for_one(std::span<select_case*> cases, agent& self) {
  enter_all(cases, self, sourced::without_lock);
  select_case* const first = earliest(cases);
  const wake_reason reason = suspend_prepared(self, cancellable::yes, first->deadline);
  ending how = ending::other;
  select_case* const chosen = leave_all(cases, how);
  switch (reason) {
    case wake_reason::notified: return how == ending::chosen ? chosen : nullptr;
    case wake_reason::timed_out: return first;
    case wake_reason::cancelled: throw_cancelled();
  }
  return nullptr;
}

}  // namespace

select_case* choose(std::span<select_case*> cases, std::span<locked_source> locks, bool in_order, bool may_wait) {
  for (;;) {
    const caller self = this_caller();  // each time: after a wait the worker may be another
    throw_if_stopped(*self.agent);
    if (!in_order) shuffle(cases);
    select_case* done = cases.size() > 1 ? try_each(cases, self.worker) : nullptr;
    if (!done) done = try_or_enter_all(cases, locks, self, may_wait);
    if (done || !may_wait) {
      spend_budget(*self.agent);
      return done;
    }
    if (select_case* const chosen = wait_for_one(cases, *self.agent)) return chosen;
  }
}

}  // namespace ulexite::detail
