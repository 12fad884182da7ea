#include <ulexite/sync/condition_variable_any.hpp>

namespace ulexite {

void condition_variable_any::notify_one() noexcept {
  detail::intrusive_list<detail::wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    (void)notify_oldest(woken);
  }
  detail::resume_all(woken);
}

void condition_variable_any::notify_all() noexcept {
  detail::intrusive_list<detail::wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    while (notify_oldest(woken)) {
    }
  }
  detail::resume_all(woken);
}

// Ends the oldest wait that is not over for another reason; false when there is none. Guard held.
bool condition_variable_any::notify_oldest(detail::intrusive_list<detail::wait_node>& woken) noexcept {
  while (detail::wait_node* const node = queue_.pop()) {
    if (!node->who) {
      node->result = detail::wait_node::outcome::served;
      return true;
    }
    const detail::claim_result result = node->who->word.claim(detail::wake_reason::notified);
    if (result == detail::claim_result::won) woken.push_back(*node);  // one that is awake may vanish
    if (result != detail::claim_result::lost) return true;
  }
  return false;
}

void condition_variable_any::enter(detail::wait_node& node) noexcept {
  const std::lock_guard lock(guard_);
  queue_.push(node);
}

// From here on the waiter's word may be claimed. False if it has been notified already.
bool condition_variable_any::prepare(detail::wait_node& node, detail::agent& self) noexcept {
  const std::lock_guard lock(guard_);
  if (node.result != detail::wait_node::outcome::pending) return false;
  node.who = &self;
  self.word.prepare();
  return true;
}

void condition_variable_any::leave(detail::wait_node& node) noexcept {
  const std::lock_guard lock(guard_);
  detail::wait_queue::remove(node);
}

}  // namespace ulexite
