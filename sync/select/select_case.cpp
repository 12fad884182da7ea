#include <ulexite/base/error.hpp>
#include <ulexite/sync/select/select_case.hpp>

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

namespace ulexite::detail {
namespace {

using ending = select_case::ending;

// The shuffle of Fisher and Yates, step by step. One random number is enough for the last eight choices; each choice
// uses up a part of it.
class shuffle {
 public:
  // Moves a random element of `rest` to its front.
  void step(std::span<select_case*> rest) noexcept {
    if (rest.size() >= 8 || !begun_) fraction_ = random_fraction(static_cast<std::uint32_t>(rest.size()));
    begun_ = true;
    const std::uint64_t choice = std::uint64_t{fraction_} * rest.size();
    std::swap(rest.front(), rest[choice >> 32]);
    fraction_ = static_cast<std::uint32_t>(choice);
  }

 private:
  bool begun_ = false;
  std::uint32_t fraction_ = 0;
};

// The locks of all sources, each once, in the common order of all selects.
class lock_set {
 public:
  explicit lock_set(std::span<select_case*> by_source) noexcept : cases_(by_source) {
    if (!std::ranges::is_sorted(cases_, {}, &select_case::source)) std::ranges::sort(cases_, {}, &select_case::source);
  }
  void lock(scheduler* worker) noexcept {
    const void* last = nullptr;
    for (select_case* const each : cases_) {
      each->lock(worker, last);
      last = each->source;
    }
  }
  void unlock() noexcept {
    for (select_case* const each : cases_) each->unlock();
  }

 private:
  std::span<select_case*> cases_;
};

// Step 1: tries each case with only its own lock held. It skips no case with a busy source. Otherwise cases would not
// be tried in order, and a case that others use all the time would never be taken. Leaves `cases` in the order of
// preference if none was ready.
select_case* try_each(std::span<select_case*> cases, scheduler* worker, bool in_order) {
  deferred_resume wake(worker);
  shuffle any;
  for (auto rest = cases; !rest.empty(); rest = rest.subspan(1)) {
    if (!in_order) any.step(rest);
    select_case* const each = rest.front();
    each->lock(worker);
    const std::lock_guard guard(*each, std::adopt_lock);
    if (each->attempt(wake.who)) return each;
  }
  return nullptr;
}

enum class sourced : bool { without_lock, with_lock };

void enter_all(std::span<select_case*> cases, agent& self, sourced which) noexcept {
  for (select_case* const each : cases)
    if (sourced(each->source != nullptr) == which) each->enter(self);
}

// Step 2: tries all cases with all locks held. Null: no case is ready; if it may wait, it is then in every queue.
select_case* try_or_enter_all(std::span<select_case*> cases, std::span<select_case*> by_source, caller self,
                              bool may_wait) {
  deferred_resume wake(self.worker);
  lock_set all(by_source);
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

// Step 3: leaves all queues. Returns the case that ended the wait, if a case did.
select_case* leave_all(std::span<select_case*> cases, ending& how) noexcept {
  scheduler* const worker = this_caller().worker;
  select_case* chosen = nullptr;
  for (select_case* const each : cases) {
    each->lock(worker);
    const std::lock_guard guard(*each, std::adopt_lock);
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

// Waits, and returns the chosen case. Null: the caller must start again.
select_case* wait_for_one(std::span<select_case*> cases, agent& self) {
  enter_all(cases, self, sourced::without_lock);
  select_case* const first = earliest(cases);
  const auto mode = waiting_for(wait_kind::select, cases.front()->source, cancellable::yes);
  const wake_reason reason = suspend_prepared(self, mode, first->deadline);
  ending how = ending::other;
  select_case* const chosen = leave_all(cases, how);
  switch (reason) {
    case wake_reason::notified: return how == ending::chosen ? chosen : nullptr;
    case wake_reason::timed_out: return first;
    case wake_reason::cancelled: throw_cancelled();
  }
  return nullptr;
}

// Of a select that may not wait: the case of a time that has passed already, or null.
select_case* passed(std::span<select_case*> cases) noexcept {
  if (cases.empty()) return nullptr;
  select_case* const first = earliest(cases);
  return first->deadline != no_deadline && first->deadline <= now_ns() ? first : nullptr;
}

}  // namespace

select_case* choose(std::span<select_case*> cases, std::span<select_case*> by_source, bool in_order, bool may_wait) {
  for (;;) {
    const caller self = this_caller();  // read each time: after a wait the fiber may have another worker
    throw_if_stopped(*self.agent);
    select_case* done = cases.size() > 1 ? try_each(cases, self.worker, in_order) : nullptr;
    if (!done) done = try_or_enter_all(cases, by_source, self, may_wait);
    if (done || !may_wait) {
      spend_budget(*self.agent);
      return done ? done : passed(cases);
    }
    if (select_case* const chosen = wait_for_one(cases, *self.agent)) return chosen;
  }
}

}  // namespace ulexite::detail
