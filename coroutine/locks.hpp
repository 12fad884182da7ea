#pragma once

#include <ulexite/coroutine/operation.hpp>
#include <ulexite/coroutine/task.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/shared_mutex.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace ulexite {
namespace detail {

// mutex::lock in two halves.
class lock_operation final : public stackless_wait {
 public:
  explicit lock_operation(mutex& of) noexcept : stackless_wait(of.waiting()), of_(of) {}

  [[nodiscard]] bool ready(agent& self) {
    if (of_.held_by(self)) of_.lock();  // throws
    waiter_ = mutex_waiter(self);
    if (self.waits_forbidden) return lock_at_once(self);
    // Before the lock, because its holder does not yield; only a deterministic run asks after it.
    if (!controlled()) return goes_on(self) && take_turn(self, false);
    return take_turn(self, false) && goes_on(self);
  }
  void block() { of_.lock(); }
  [[nodiscard]] std::unique_lock<mutex> result() noexcept { return {of_, std::adopt_lock}; }

 private:
  bool lock_at_once(agent& self) {
    if (!of_.try_lock()) check_may_wait(self, wait_kind::mutex);
    return true;
  }
  bool take_turn(agent& self, bool woken_before) noexcept {
    taken_ = (!controlled() && of_.take_free(self)) || of_.take_turn_or_queue(waiter_, woken_before);
    queued_ = !taken_;
    if (queued_) begin(self, &of_.guard_, no_deadline);
    return taken_;
  }
  [[nodiscard]] bool resumed(agent& self) noexcept override { return taken_ || take_turn(self, queued_); }

  mutex& of_;
  mutex_waiter waiter_;
  bool queued_ = false;
  bool taken_ = false;
};

// shared_mutex::lock and lock_shared in two halves.
class shared_lock_operation : public stackless_wait {
 public:
  [[nodiscard]] bool ready(agent& self) {
    waiter_.who = &self;
    if (!controlled()) return goes_on(self) && lock(self);
    return lock(self) && goes_on(self);
  }
  void block() { of_.lock(waiter_.as, no_deadline, name()); }

 protected:
  shared_lock_operation(shared_mutex& of, bool shared) noexcept
      : stackless_wait(of.waiting()),
        of_(of),
        waiter_(this_agent(), shared ? shared_mutex::kind::reader : shared_mutex::kind::writer) {}

  // The mutex is the caller's.
  shared_mutex& locked() {
    if (failed_) rethrow_kept();
    return of_;
  }

 private:
  [[nodiscard]] const char* name() const noexcept {
    return waiter_.as == shared_mutex::kind::reader ? "lock_shared" : "lock";
  }
  bool lock(agent& self) {
    taken_ = of_.lock_or_queue(waiter_, name());
    queued_ = !taken_;
    if (queued_) begin(self, &of_.guard_, no_deadline);
    return taken_;
  }
  [[nodiscard]] bool resumed(agent& self) noexcept override {
    if (taken_) return true;
    if (std::exchange(queued_, false)) {
      ++self.held_locks;
      return true;
    }
    try {
      return lock(self);
    } catch (...) {
      keep_exception(self);
      return failed_ = true;
    }
  }

  shared_mutex& of_;
  shared_mutex::waiter waiter_;
  bool queued_ = false;
  bool taken_ = false;
  bool failed_ = false;
};

class unique_lock_operation final : public shared_lock_operation {
 public:
  explicit unique_lock_operation(shared_mutex& of) noexcept : shared_lock_operation(of, false) {}
  [[nodiscard]] std::unique_lock<shared_mutex> result() {
    return std::unique_lock<shared_mutex>(locked(), std::adopt_lock);
  }
};
class reader_lock_operation final : public shared_lock_operation {
 public:
  explicit reader_lock_operation(shared_mutex& of) noexcept : shared_lock_operation(of, true) {}
  [[nodiscard]] std::shared_lock<shared_mutex> result() {
    return std::shared_lock<shared_mutex>(locked(), std::adopt_lock);
  }
};

// condition_variable::wait in its parts: the wait for the notification, and that for the mutex.
class condition_operation final : public stackless_wait {
 public:
  condition_operation(condition_variable& at, std::unique_lock<mutex>& lock, std::int64_t deadline)
      : stackless_wait(waiting_for(wait_kind::condition_variable, &at,
                                   deadline == no_deadline ? cancellable::no : cancellable::yes)),
        at_(at),
        lock_(lock),
        deadline_(deadline),
        node_(this_agent(), condition_variable::held(lock, this_agent())) {}

  [[nodiscard]] bool ready(agent& self) {
    node_.who = &self;
    if (needs_timer(self, deadline_)) provide_timer();
    at_.enter(node_, cancellable{is_cancellable()});
    begin(self, nullptr, deadline_);
    return false;
  }
  void block() {
    const std::cv_status how = at_.wait_until_ns(lock_, deadline_, cancellable{is_cancellable()});
    reason_ = how == std::cv_status::timeout ? wake_reason::timed_out : wake_reason::notified;
  }
  // The caller holds the mutex again.
  std::cv_status result() {
    if (reason_ == wake_reason::cancelled) throw_cancelled();
    return reason_ == wake_reason::timed_out ? std::cv_status::timeout : std::cv_status::no_timeout;
  }

 private:
  [[nodiscard]] bool resumed(agent& self) noexcept override {
    bool again = true;
    if (std::exchange(waits_, false)) {
      reason_ = end(self);
      again = reason_ == wake_reason::notified && node_.requeued;
      if (reason_ != wake_reason::notified) {
        at_.leave(node_);
        if (node_.notified) reason_ = wake_reason::notified;
        static_cast<mutex_waiter&>(node_) = mutex_waiter(self);
      }
    }
    if (node_.of.take_turn_or_queue(node_, again)) return true;
    set_mode(node_.of.waiting());
    begin(self, &node_.of.guard_, no_deadline);
    return false;
  }

  condition_variable& at_;
  std::unique_lock<mutex>& lock_;
  const std::int64_t deadline_;
  condition_variable::waiter node_;
  bool waits_ = true;
  wake_reason reason_ = wake_reason::notified;
};

}  // namespace detail

// As mutex::lock. The result unlocks the mutex at its end. Not a cancellation point. Throws usage_error if the fiber
// holds the mutex already.
[[nodiscard]] inline auto co_lock(mutex& of) { return detail::lock_operation(of); }
// As shared_mutex::lock and lock_shared. The result unlocks the mutex at its end. Not a cancellation point. Throws
// usage_error.
[[nodiscard]] inline auto co_lock(shared_mutex& of) { return detail::unique_lock_operation(of); }
[[nodiscard]] inline auto co_lock_shared(shared_mutex& of) { return detail::reader_lock_operation(of); }

// As condition_variable::wait, wait_for and wait_until: holds the mutex again when it returns or throws. The forms with
// a time are cancellation points, and return std::cv_status.
[[nodiscard]] inline auto co_wait(condition_variable& at, std::unique_lock<mutex>& lock) {
  return detail::condition_operation(at, lock, detail::no_deadline);
}
[[nodiscard]] inline auto co_wait_for(condition_variable& at, std::unique_lock<mutex>& lock, relative_timeout time) {
  return detail::condition_operation(at, lock, time.deadline());
}
[[nodiscard]] inline auto co_wait_until(condition_variable& at, std::unique_lock<mutex>& lock, absolute_timeout time) {
  return detail::condition_operation(at, lock, time.deadline());
}
// Waits, as often as needed, until condition() is true. `condition` is copied; what it refers to must outlive the wait.
// The forms with a time result in condition() at the end.
template <class Condition>
  requires std::is_invocable_r_v<bool, Condition&>
task<> co_wait(condition_variable& at, std::unique_lock<mutex>& lock, Condition condition) {
  while (!condition()) co_await co_wait(at, lock);
}
template <class Condition>
  requires std::is_invocable_r_v<bool, Condition&>
task<bool> co_wait_until(condition_variable& at, std::unique_lock<mutex>& lock, absolute_timeout time,
                         Condition condition) {
  bool reached = condition();
  for (std::cv_status how{}; !reached && how == std::cv_status::no_timeout; reached = condition())
    how = co_await co_wait_until(at, lock, time);
  co_return reached;
}
template <class Condition>
  requires std::is_invocable_r_v<bool, Condition&>
task<bool> co_wait_for(condition_variable& at, std::unique_lock<mutex>& lock, relative_timeout time,
                       Condition condition) {
  const steady_clock::time_point until{std::chrono::nanoseconds(time.deadline())};
  return co_wait_until(at, lock, until, std::move(condition));
}

}  // namespace ulexite
