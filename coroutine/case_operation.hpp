#pragma once

#include <ulexite/coroutine/operation.hpp>
#include <ulexite/sync/select.hpp>

#include <cstdint>
#include <mutex>
#include <utility>

namespace ulexite::detail {

// A wait at one case of a select, whose lock is held until the wait is published, as that of a channel. The derived
// class adds result().
template <class Case>
class case_operation : public stackless_wait {
  static_assert(fits_in_a_frame<Case>,
                "a value that waits in a coroutine's frame must not be aligned to more than two pointers");

 public:
  // `make` returns the case. The wait ends at `until`, too.
  template <class Make>
  case_operation(wait_mode mode, Make&& make, std::int64_t until = no_deadline)
      : stackless_wait(mode), case_(std::forward<Make>(make)()) {
    if (until != no_deadline) case_.deadline = until;
  }

  [[nodiscard]] bool ready(agent& self) {
    if (is_cancellable()) throw_if_stopped(self);
    if (self.waits_forbidden || needs_timer(self, case_.deadline)) [[unlikely]] {
      if (attempt(self, false)) return goes_on(self);
      check_may_wait(self, wait_mode::kind_of(mode().bits));
      provide_timer();
    }
    if (attempt(self, true)) return goes_on(self);
    begin(self, case_.held_lock(), case_.deadline);
    return false;
  }
  void block() {
    agent& self = this_agent();
    if (is_cancellable()) throw_if_stopped(self);
    if (self.waits_forbidden && !attempt(self, false)) check_may_wait(self, wait_mode::kind_of(mode().bits));
    while (ended_ == ending::none && !attempt(self, true)) {
      spin_lock* const held = case_.held_lock();
      const wake_reason reason = held ? suspend_and_unlock(self, *held, mode(), case_.deadline)
                                      : suspend_prepared(self, mode(), case_.deadline);
      if (ended_by(reason, false)) return;
    }
    spend_budget(self);
  }
  // False: its time was over first. Throws if it was cancelled, or its value's move threw.
  [[nodiscard]] bool done() {
    if (ended_ == ending::failed) rethrow_kept();
    if (ended_ == ending::cancelled) throw_cancelled();
    return ended_ == ending::chosen;
  }

 protected:
  ~case_operation() = default;

  Case case_;

 private:
  enum class ending : std::uint8_t { none, chosen, timed_out, cancelled, failed };

  // Does the operation. If it would have to wait and `may_wait`, it is then in the source's queue, with the lock held.
  bool attempt(agent& self, bool may_wait) {
    scheduler* const worker = inlined_execution().scheduler;
    deferred_resume wake(worker);
    case_.lock(worker);
    std::unique_lock<select_case> guard(case_, std::adopt_lock);
    if (case_.attempt(wake.who)) {
      ended_ = ending::chosen;
      return true;
    }
    if (!may_wait) return false;
    if (!case_.source) self.word.prepare();
    case_.enter(self);
    static_cast<void>(guard.release());
    return false;
  }
  // Leaves the queue. False: it must wait again. `served`: its claimer has released the lock.
  bool ended_by(wake_reason reason, bool served) noexcept {
    if (!served) case_.lock(inlined_execution().scheduler);
    const select_case::ending how = case_.leave();
    if (!served) case_.unlock();
    if (reason == wake_reason::notified && how != select_case::ending::chosen) return false;
    ended_ = reason == wake_reason::notified    ? ending::chosen
             : reason == wake_reason::timed_out ? ending::timed_out
                                                : ending::cancelled;
    return true;
  }

  [[nodiscard]] bool resumed(agent& self) noexcept override {
    if (ended_ != ending::none) return true;  // it has yielded
    const bool timed = is_timed();
    const wake_reason reason = end(self);
    if (ended_by(reason, reason == wake_reason::notified && !timed)) return true;
    try {
      if (attempt(self, true)) return true;
    } catch (...) {
      keep_exception(self);
      ended_ = ending::failed;
      return true;
    }
    begin(self, case_.held_lock(), case_.deadline);
    return false;
  }

  ending ended_ = ending::none;
};

// A case without a value. Its result says whether it came before the end of its time.
template <class Case>
class plain_operation final : public case_operation<Case> {
 public:
  using case_operation<Case>::case_operation;
  bool result() { return this->done(); }
};
// The same without an end of its time.
template <class Case>
class void_operation final : public case_operation<Case> {
 public:
  using case_operation<Case>::case_operation;
  void result() { static_cast<void>(this->done()); }
};

}  // namespace ulexite::detail
