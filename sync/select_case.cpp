#include <ulexite/base/error.hpp>
#include <ulexite/sync/select_case.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace ulexite::detail {
namespace {

using ending = select_case::ending;

// Fisher and Yates.
void shuffle(std::span<select_case*> cases) noexcept {
  for (std::size_t i = cases.size(); i > 1; --i)
    std::swap(cases[i - 1], cases[random_below(static_cast<std::uint32_t>(i))]);
}

// All locks of the cases, each once, in the order that everybody takes them in.
class lock_set {
 public:
  lock_set(std::span<select_case*> cases, std::span<spin_lock*> room) {
    std::size_t count = 0;
    for (select_case* const each : cases)
      if (spin_lock* const lock = each->lock()) room[count++] = lock;
    std::ranges::sort(room.first(count));
    locks_ = room.first(static_cast<std::size_t>(std::ranges::unique(room.first(count)).begin() - room.begin()));
  }
  [[nodiscard]] std::size_t size() const noexcept { return locks_.size(); }
  void lock() noexcept {
    for (spin_lock* const each : locks_) each->lock();
  }
  void unlock() noexcept {
    for (spin_lock* const each : locks_) each->unlock();
  }

 private:
  std::span<spin_lock*> locks_;
};

// The step in which each case is tried with nothing but its own lock held. One whose source is busy is passed over: it
// has its turn in the next step.
select_case* try_each(std::span<select_case*> cases) {
  for (select_case* const each : cases) {
    deferred_resume wake;
    spin_lock* const lock = each->lock();
    const auto guard = lock ? std::unique_lock(*lock, std::try_to_lock) : std::unique_lock<spin_lock>();
    if (lock && !guard) continue;
    if (each->attempt(wake.who)) return each;
  }
  return nullptr;
}

enum class sourced : bool { without_lock, with_lock };

void enter_all(std::span<select_case*> cases, agent& self, sourced which) noexcept {
  for (select_case* const each : cases)
    if (sourced(each->lock() != nullptr) == which) each->enter(self);
}

// The step in which all locks are held. Null: no case can be done, and if it may wait it stands in every queue.
select_case* try_or_enter_all(std::span<select_case*> cases, lock_set& all, agent& self, bool may_wait) {
  deferred_resume wake;
  const std::lock_guard guard(all);
  for (select_case* const each : cases)
    if (each->attempt(wake.who)) return each;
  if (may_wait) {
    self.word.prepare();
    enter_all(cases, self, sourced::with_lock);
  }
  return nullptr;
}

// Which case ended the wait, if a case did.
select_case* leave_all(std::span<select_case*> cases, ending& how) noexcept {
  select_case* chosen = nullptr;
  for (select_case* const each : cases) {
    spin_lock* const lock = each->lock();
    const auto guard = lock ? std::unique_lock(*lock) : std::unique_lock<spin_lock>();
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

select_case* choose(std::span<select_case*> cases, std::span<spin_lock*> locks, bool in_order, bool may_wait) {
  agent& self = this_agent();
  for (;;) {
    throw_if_stopped(self);
    if (!in_order) shuffle(cases);
    lock_set all(cases, locks);
    select_case* done = all.size() > 1 ? try_each(cases) : nullptr;
    if (!done) done = try_or_enter_all(cases, all, self, may_wait);
    if (done || !may_wait) {
      spend_budget(self);
      return done;
    }
    if (select_case* const chosen = wait_for_one(cases, self)) return chosen;
  }
}

}  // namespace ulexite::detail
