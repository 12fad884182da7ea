#include <ulexite/sync/condition_variable_any.hpp>

namespace ulexite {

void condition_variable_any::notify_one() noexcept {
  const detail::yield_point at_exit;
  detail::intrusive_list<detail::wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    (void)notify_oldest(woken);
  }
  detail::resume_all(woken);
}

void condition_variable_any::notify_all() noexcept {
  const detail::yield_point at_exit;
  detail::intrusive_list<detail::wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    while (notify_oldest(woken)) {
    }
  }
  detail::resume_all(woken);
}

// Ends the oldest wait that has not ended for another reason; false if there is none. Guard held.
bool condition_variable_any::notify_oldest(detail::intrusive_list<detail::wait_node>& woken) noexcept {
  while (auto* const node = static_cast<waiter*>(queue_.pop())) {
    detail::agent& who = *node->who;  // a waiter that is awake may destroy its node
    if (who.word.abandoned()) continue;
    stage entered = stage::entered;
    if (node->at.compare_exchange_strong(entered, stage::notified, std::memory_order_acq_rel,  // A
                                         std::memory_order_acquire))                           // A
      return true;
    const detail::claim_result result = who.word.claim(detail::wake_reason::notified);
    if (result == detail::claim_result::won) woken.push_back(*node);
    if (result != detail::claim_result::lost) return true;
  }
  return false;
}

void condition_variable_any::enter(waiter& node) noexcept {
  const std::lock_guard lock(guard_);
  queue_.push(node);
}

void condition_variable_any::leave(waiter& node) noexcept {
  const std::lock_guard lock(guard_);
  detail::wait_queue::remove(node);
}

}  // namespace ulexite
