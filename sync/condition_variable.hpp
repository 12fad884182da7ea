#pragma once

#include <ulexite/sync/mutex.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace ulexite {

// std::condition_variable for ulexite::mutex. Waits with a time limit are cancellation points, and hold the mutex again
// when they throw. Waits without a limit are not cancellation points. A notification while the mutex is held wakes no
// waiter. It moves waiters to the queue of the mutex (wait morphing, as in the futex requeue of Linux; Drepper, 2004).
//
// It may be destroyed after every notification has returned and every waiter has been notified. Waits without a time
// limit may still be under way then.
class condition_variable {
 public:
  condition_variable() = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  // Wake one waiter, or all. Never wait. Any fiber or thread, with or without the mutex.
  void notify_one() noexcept { notify(false); }
  void notify_all() noexcept { notify(true); }

  // Releases the mutex and waits for a notification; holds the mutex again at the return. Throws usage_error, and
  // changes nothing, if the caller does not hold the mutex, or if others wait with another mutex.
  void wait(std::unique_lock<mutex>& lock) { wait_until_ns(lock, detail::no_deadline, detail::cancellable::no); }
  // Waits until `condition()`, called with the mutex held, is true.
  template <class Condition>
  void wait(std::unique_lock<mutex>& lock, Condition condition) {
    while (!condition()) wait(lock);
  }

  // Wait as wait(), at most for `time`, or until `time`. The forms with a condition return its last value. Cancellation
  // points: throw operation_cancelled.
  std::cv_status wait_for(std::unique_lock<mutex>& lock, relative_timeout time) {
    return wait_until_ns(lock, time.deadline());
  }
  std::cv_status wait_until(std::unique_lock<mutex>& lock, absolute_timeout time) {
    return wait_until_ns(lock, time.deadline());
  }
  template <class Condition>
  [[nodiscard]] bool wait_for(std::unique_lock<mutex>& lock, relative_timeout time, Condition condition) {
    return wait_until_ns(lock, time.deadline(), condition);
  }
  template <class Condition>
  [[nodiscard]] bool wait_until(std::unique_lock<mutex>& lock, absolute_timeout time, Condition condition) {
    return wait_until_ns(lock, time.deadline(), condition);
  }

 private:
  struct waiter : detail::mutex_waiter {
    waiter(detail::agent& self, mutex& holds) noexcept : mutex_waiter(self), of(holds) {}
    mutex& of;
    bool notified = false;  // under guard_
  };

  friend class detail::condition_operation;

  void notify(bool all) noexcept;
  // The mutex of `lock`. Throws usage_error unless `by` holds it.
  static mutex& held(const std::unique_lock<mutex>& lock, const detail::agent& by);
  // The caller gives the mutex up and is in the queue, with its word prepared. Throws as wait.
  void enter(waiter& node, detail::cancellable cancellable);
  // Leaves the queue without a notification, or the mutex's queue after one.
  void leave(waiter& node) noexcept;
  std::cv_status wait_until_ns(std::unique_lock<mutex>& lock, std::int64_t deadline,
                               detail::cancellable cancellable = detail::cancellable::yes);
  template <class Condition>
  bool wait_until_ns(std::unique_lock<mutex>& lock, std::int64_t deadline, Condition& condition) {
    while (!condition())
      if (wait_until_ns(lock, deadline) == std::cv_status::timeout) return condition();
    return true;
  }

  detail::spin_lock guard_;  // guards queue_
  detail::wait_queue queue_;
};

}  // namespace ulexite
