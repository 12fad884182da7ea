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

// Of a select that may not wait: the case of a time that has passed already, or null.
select_case* passed(std::span<select_case*> cases) noexcept {
  if (cases.empty()) return nullptr;
  select_case* const first = earliest(cases);
  return first->deadline != no_deadline && first->deadline <= now_ns() ? first : nullptr;
}

}  // namespace

select_case* earliest(std::span<select_case*> cases) noexcept {
  return *std::ranges::min_element(cases, {}, &select_case::deadline);
}

select_case* try_or_enter(std::span<select_case*> cases, std::span<select_case*> by_source, caller self, bool in_order,
                          bool may_wait) {
  throw_if_stopped(*self.agent);
  select_case* done = cases.size() > 1 ? try_each(cases, self.worker, in_order) : nullptr;
  if (!done) done = try_or_enter_all(cases, by_source, self, may_wait);
  if (done) return done;
  if (!may_wait) return passed(cases);
  enter_all(cases, *self.agent, sourced::without_lock);
  return nullptr;
}

select_case* leave_all(std::span<select_case*> cases, wake_reason reason, select_case* first) noexcept {
  scheduler* const worker = this_caller().worker;
  select_case* chosen = nullptr;
  for (select_case* const each : cases) {
    each->lock(worker);
    const std::lock_guard guard(*each, std::adopt_lock);
    if (each->leave() == ending::chosen) chosen = each;
  }
  return reason == wake_reason::notified ? chosen : reason == wake_reason::timed_out ? first : nullptr;
}

// The halves are inlined here, because a select that does not wait takes no longer than some calls.
[[gnu::flatten]] select_case* choose(std::span<select_case*> cases, std::span<select_case*> by_source, bool in_order,
                                     bool may_wait) {
  for (;;) {
    const caller self = this_caller();  // read each time: after a wait the fiber may have another worker
    select_case* const done = try_or_enter(cases, by_source, self, in_order, may_wait);
    if (done || !may_wait) {
      spend_budget(*self.agent);
      return done;
    }
    select_case* const first = earliest(cases);
    const auto mode = waiting_for(wait_kind::select, cases.front()->source, cancellable::yes);
    const wake_reason reason = suspend_prepared(*self.agent, mode, first->deadline);
    select_case* const chosen = leave_all(cases, reason, first);
    if (reason == wake_reason::cancelled) throw_cancelled();
    if (chosen) return chosen;
  }
}

}  // namespace ulexite::detail
