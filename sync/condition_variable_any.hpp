#pragma once

#include <ulexite/sync/wait/stop_claim.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <utility>

namespace ulexite {

// std::condition_variable_any: for any lock, such as std::unique_lock<timed_mutex>, std::shared_lock<shared_mutex> or
// recursive_mutex. For std::unique_lock<mutex> use condition_variable: it does not wake waiters that would find the
// mutex locked.
//
// Waits with a time limit or a stop_token are cancellation points, and hold the lock again when they throw
// operation_cancelled. Other waits are not.
class condition_variable_any {
 public:
  condition_variable_any() = default;
  condition_variable_any(const condition_variable_any&) = delete;
  condition_variable_any& operator=(const condition_variable_any&) = delete;

  // Wake one waiter, or all. Never wait. Any fiber or thread, with or without the lock.
  void notify_one() noexcept;
  void notify_all() noexcept;

  // Releases the lock and waits for a notification; holds the lock again at the return. Throws exceptions of
  // lock.unlock().
  template <class Lock>
  void wait(Lock& lock) {
    wait_ns(lock, detail::no_deadline, detail::cancellable::no);
  }
  // Waits until `condition()`, called with the lock held, is true.
  template <class Lock, class Condition>
    requires(!std::is_convertible_v<Condition, std::stop_token>)
  void wait(Lock& lock, Condition condition) {
    while (!condition()) wait(lock);
  }
  // Waits until `condition()` is true, or a stop is requested of `token`. Returns the last value of the condition.
  template <class Lock, class Condition>
  bool wait(Lock& lock, std::stop_token token, Condition condition) {
    return wait_until_ns(lock, token, detail::no_deadline, condition);
  }

  // Wait as above, at most for `time`, or until `time`. The forms with a condition return its last value.
  template <class Lock>
  std::cv_status wait_for(Lock& lock, relative_timeout time) {
    return wait_ns(lock, time.deadline());
  }
  template <class Lock>
  std::cv_status wait_until(Lock& lock, absolute_timeout time) {
    return wait_ns(lock, time.deadline());
  }
  template <class Lock, class Condition>
  [[nodiscard]] bool wait_for(Lock& lock, relative_timeout time, Condition condition) {
    return wait_until_ns(lock, {}, time.deadline(), condition);
  }
  template <class Lock, class Condition>
  [[nodiscard]] bool wait_until(Lock& lock, absolute_timeout time, Condition condition) {
    return wait_until_ns(lock, {}, time.deadline(), condition);
  }
  template <class Lock, class Condition>
  [[nodiscard]] bool wait_for(Lock& lock, std::stop_token token, relative_timeout time, Condition condition) {
    return wait_until_ns(lock, token, time.deadline(), condition);
  }
  template <class Lock, class Condition>
  [[nodiscard]] bool wait_until(Lock& lock, std::stop_token token, absolute_timeout time, Condition condition) {
    return wait_until_ns(lock, token, time.deadline(), condition);
  }

 private:
  // Locks again when it is destroyed.
  template <class Lock>
  struct relock {
    Lock& lock;
    ~relock() { lock.lock(); }
  };

  // Whether a notifier may claim a waiter's word. It may not while the waiter's lock is being released, because the
  // unlock may wait itself. In that time the stage alone tells the waiter of a notification.
  enum class stage : std::uint8_t { entered, prepared, notified };
  struct waiter : detail::wait_node {
    using wait_node::wait_node;
    // State
    //   waiter::at   the progress of the waiter (`stage`). Changed once by the waiter and once by its notifier.
    //
    // Pairings
    //   A  the waiter changes its stage, acq_rel  ->  the notifier changes it, acq_rel. Either the notifier finds the
    //      word prepared, or the waiter sees all writes before the notification.
    std::atomic<stage> at{stage::entered};
  };

  void enter(waiter& node) noexcept;
  void leave(waiter& node) noexcept;
  [[nodiscard]] bool notify_oldest(detail::intrusive_list<detail::wait_node>& woken) noexcept;

  // A waiter can be notified as soon as it has entered. A notified waiter no longer touches the variable, which may be
  // destroyed.
  template <class Lock>
  std::cv_status wait_ns(Lock& lock, std::int64_t deadline, detail::cancellable cancellable = detail::cancellable::yes,
                         const std::stop_token& token = {}) {
    detail::agent& self = detail::this_agent();
    if (cancellable == detail::cancellable::yes) detail::throw_if_stopped(self);
    detail::check_may_wait(self, detail::wait_kind::condition_variable);
    waiter node(self);
    enter(node);
    try {
      lock.unlock();
    } catch (...) {
      leave(node);
      if (node.at.load(std::memory_order_relaxed) == stage::notified) notify_one();  // passes it to another waiter
      throw;
    }
    const relock<Lock> at_end{lock};
    self.word.prepare();
    stage entered = stage::entered;
    if (!node.at.compare_exchange_strong(entered, stage::prepared, std::memory_order_acq_rel,  // A
                                         std::memory_order_acquire))                           // A
      return std::cv_status::no_timeout;
    detail::stop_claim stop;
    if (token.stop_possible()) stop.watch(token, self);
    const auto reason = detail::suspend_prepared(
        self, detail::waiting_for(detail::wait_kind::condition_variable, this, cancellable), deadline);
    if (stop.deregister() || reason != detail::wake_reason::notified) leave(node);
    if (reason == detail::wake_reason::cancelled) detail::throw_cancelled();
    return reason == detail::wake_reason::timed_out ? std::cv_status::timeout : std::cv_status::no_timeout;
  }

  template <class Lock, class Condition>
  bool wait_until_ns(Lock& lock, std::stop_token token, std::int64_t deadline, Condition& condition) {
    while (!condition()) {
      if (token.stop_requested()) return false;
      if (wait_ns(lock, deadline, detail::cancellable::yes, token) == std::cv_status::timeout) return condition();
    }
    return true;
  }

  detail::spin_lock guard_;  // guards queue_
  detail::wait_queue queue_;
};

}  // namespace ulexite
