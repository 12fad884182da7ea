#include <ulexite/base/error.hpp>
#include <ulexite/runtime/object_name.hpp>
#include <ulexite/sync/shared_mutex.hpp>

#include <mutex>
#include <string>

namespace ulexite {

// Guard held.
void shared_mutex::let_in(kind as, detail::agent& who) noexcept {
  if (as == kind::reader) {
    ++readers_;
  } else {
    writer_ = &who;
  }
}

// Guard held; releases it. Call it when a holder or a waiting writer has left.
void shared_mutex::unlock_and_let_in() noexcept {
  detail::intrusive_list<detail::wait_node> woken;
  while (auto* const next = static_cast<waiter*>(queue_.pop())) {
    if (!admits(next->as)) {
      queue_.push_front(*next);
      break;
    }
    const detail::claim_result result = next->who->word.claim(detail::wake_reason::notified);
    if (result == detail::claim_result::lost) continue;  // its time has passed
    let_in(next->as, *next->who);
    if (result == detail::claim_result::won) woken.push_back(*next);
  }
  guard_.unlock();
  detail::resume_holders(woken);
}

bool shared_mutex::try_lock(kind as) noexcept {
  const detail::yield_point at_exit;
  detail::agent& self = detail::this_agent();
  const std::lock_guard lock(guard_);
  if (!queue_.nobody_waits() || !admits(as)) return false;
  let_in(as, self);
  ++self.held_locks;
  return true;
}

bool shared_mutex::lock(kind as, std::int64_t deadline, const char* operation) {
  const detail::yield_point at_exit;
  detail::agent& self = detail::this_agent();
  if (!detail::controlled()) detail::spend_budget(self);  // before the lock, because a holder does not yield
  waiter waiter(self, as);
  if (lock_or_queue(waiter, operation)) return true;
  if (detail::suspend_and_unlock(self, guard_, waiting(), deadline) == detail::wake_reason::notified) {
    ++self.held_locks;
    return true;
  }
  unlink(waiter);
  return false;
}

bool shared_mutex::lock_or_queue(waiter& waiter, const char* operation) {
  detail::agent& self = *waiter.who;
  guard_.lock();
  if (writer_ == &self) {
    guard_.unlock();
    throw usage_error(std::string("shared_mutex::") + operation + " by its owner: " + detail::name_and_address(this));
  }
  if (queue_.nobody_waits() && admits(waiter.as)) {
    let_in(waiter.as, self);
    guard_.unlock();
    ++self.held_locks;
    return true;
  }
  if (self.waits_forbidden) [[unlikely]] {
    guard_.unlock();
    detail::check_may_wait(self, detail::wait_kind::shared_mutex);
  }
  queue_.push(waiter);
  return false;
}

void shared_mutex::unlink(waiter& waiter) noexcept {
  guard_.lock();
  detail::wait_queue::remove(waiter);
  unlock_and_let_in();  // lets readers in that wait behind the leaving writer
}

void shared_mutex::unlock() {
  const detail::yield_point at_exit;
  detail::agent& self = detail::this_agent();
  guard_.lock();
  if (writer_ != &self) {
    guard_.unlock();
    throw usage_error("shared_mutex::unlock by another than its owner: " + detail::name_and_address(this));
  }
  writer_ = nullptr;
  --self.held_locks;
  unlock_and_let_in();
}

void shared_mutex::unlock_shared() {
  const detail::yield_point at_exit;
  guard_.lock();
  if (readers_ == 0) {
    guard_.unlock();
    throw usage_error("shared_mutex::unlock_shared without a reader");
  }
  --readers_;
  --detail::this_agent().held_locks;
  unlock_and_let_in();
}

}  // namespace ulexite
