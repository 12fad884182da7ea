#include <ulexite/base/error.hpp>
#include <ulexite/sync/condition_variable.hpp>

namespace ulexite {

void condition_variable::notify_one() noexcept {
  detail::deferred_resume wake;
  const std::lock_guard lock(guard_);
  wake.who = queue_.claim_oldest().who;
}

void condition_variable::notify_all() noexcept {
  detail::intrusive_list<detail::wait_node> woken;
  guard_.lock();
  queue_.claim_all(woken);
  guard_.unlock();
  detail::resume_all(woken);
}

// The waiter can be notified from the moment it stands in the queue, that is before it has given up the mutex and
// before it is suspended: hence the prepared wait.
std::cv_status condition_variable::wait_until_ns(std::unique_lock<mutex>& lock, std::int64_t deadline) {
  detail::agent& self = detail::this_agent();
  if (!lock.owns_lock() || !lock.mutex()->held_by(self))
    throw usage_error("condition_variable::wait without holding the mutex");
  detail::wait_node node(self);
  self.word.prepare();
  guard_.lock();
  queue_.push(node);
  guard_.unlock();
  lock.unlock();
  const auto reason = detail::suspend_prepared(self, detail::cancellable::no, deadline);
  if (reason == detail::wake_reason::timed_out) {
    guard_.lock();
    detail::wait_queue::remove(node);
    guard_.unlock();
  }
  lock.lock();
  return reason == detail::wake_reason::timed_out ? std::cv_status::timeout : std::cv_status::no_timeout;
}

}  // namespace ulexite
