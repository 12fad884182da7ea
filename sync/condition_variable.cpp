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
  if (!notified.empty()) static_cast<waiter&>(notified.front()).of.admit(notified, wake.who);
}

// The waiter can be notified as soon as it is in the queue. That is before it has released the mutex, and before it is
// suspended, so the wait is prepared. If the wait ends in another way, the waiter removes itself. A notification that
// arrived before that still counts as its own; otherwise it would be lost.
std::cv_status condition_variable::wait_until_ns(std::unique_lock<mutex>& lock, std::int64_t deadline,
                                                 detail::cancellable cancellable) {
  detail::agent& self = detail::this_agent();
  if (!lock.owns_lock() || !lock.mutex()->held_by(self))
    throw usage_error("condition_variable::wait without holding the mutex");
  if (cancellable == detail::cancellable::yes) detail::throw_if_stopped(self);
  detail::check_may_wait(self, detail::wait_kind::condition_variable);
  mutex& of = *lock.mutex();
  waiter node(self, of);
  {
    const std::lock_guard guard(guard_);
    if (!queue_.nobody_waits() && &static_cast<waiter&>(queue_.oldest()).of != &of)
      throw usage_error("condition_variable::wait with another mutex than the present waiters use");
    self.word.prepare();
    queue_.push(node);
  }
  of.unlock();
  const auto reason = detail::suspend_prepared(
      self, detail::waiting_for(detail::wait_kind::condition_variable, this, cancellable), deadline);
  if (reason == detail::wake_reason::notified) {
    of.wait_for_turn(node, node.sent_to_mutex);
    return std::cv_status::no_timeout;
  }
  guard_.lock();
  if (!node.notified) detail::wait_queue::remove(node);
  guard_.unlock();
  if (node.sent_to_mutex) of.forget(node);
  of.lock();
  if (node.notified) return std::cv_status::no_timeout;
  if (reason == detail::wake_reason::cancelled) detail::throw_cancelled();
  return std::cv_status::timeout;
}

}  // namespace ulexite
