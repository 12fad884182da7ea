#include <ulexite/base/error.hpp>
#include <ulexite/sync/condition_variable.hpp>

namespace ulexite {

// A waiter is not woken while the mutex is taken. It is moved to the mutex's queue, and wakes at its turn.
void condition_variable::notify(bool all) noexcept {
  const detail::yield_point at_exit;
  detail::deferred_resume wake(detail::this_caller().worker);
  detail::intrusive_list<detail::mutex_waiter> notified;
  const std::lock_guard lock(guard_);
  while (auto* const next = static_cast<waiter*>(queue_.pop())) {
    if (next->who->word.abandoned()) continue;
    next->notified = true;
    notified.push_back(*next);
    if (!all) break;
  }
  if (!notified.empty()) static_cast<waiter&>(notified.front()).of.requeue_from_condvar(notified, wake.who);
}

mutex& condition_variable::held(const std::unique_lock<mutex>& lock, const detail::agent& by) {
  if (lock.owns_lock() && lock.mutex()->held_by(by)) return *lock.mutex();
  throw usage_error("condition_variable::wait without holding the mutex");
}

// The waiter can be notified as soon as it is in the queue. That is before it has released the mutex, and before it is
// suspended, so the wait is prepared.
void condition_variable::enter(waiter& node, detail::cancellable cancellable) {
  detail::agent& self = *node.who;
  if (cancellable == detail::cancellable::yes) detail::throw_if_stopped(self);
  detail::check_may_wait(self, detail::wait_kind::condition_variable);
  {
    const std::lock_guard guard(guard_);
    if (!queue_.nobody_waits() && &static_cast<waiter&>(queue_.oldest()).of != &node.of)
      throw usage_error("condition_variable::wait with another mutex than the present waiters use");
    self.word.prepare();
    queue_.push(node);
  }
  node.of.unlock();
}

// If the wait ends in another way than by a notification, the waiter removes itself.
void condition_variable::leave(waiter& node) noexcept {
  guard_.lock();
  if (!node.notified) detail::wait_queue::remove(node);
  guard_.unlock();
  if (node.requeued) node.of.unlink(node);
}

// A notification that arrived before another end of the wait counts as its own; otherwise it would be lost.
std::cv_status condition_variable::wait_until_ns(std::unique_lock<mutex>& lock, std::int64_t deadline,
                                                 detail::cancellable cancellable) {
  detail::agent& self = detail::this_agent();
  waiter node(self, held(lock, self));
  enter(node, cancellable);
  const auto reason = detail::suspend_prepared(
      self, detail::waiting_for(detail::wait_kind::condition_variable, this, cancellable), deadline);
  if (reason == detail::wake_reason::notified) {
    node.of.wait_for_turn(node, node.requeued);
    return std::cv_status::no_timeout;
  }
  leave(node);
  node.of.lock();
  if (node.notified) return std::cv_status::no_timeout;
  if (reason == detail::wake_reason::cancelled) detail::throw_cancelled();
  return std::cv_status::timeout;
}

}  // namespace ulexite
