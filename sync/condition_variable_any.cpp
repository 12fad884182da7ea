#include <ulexite/sync/condition_variable_any.hpp>

namespace ulexite {

void condition_variable_any::notify_one() noexcept {
  detail::deferred_resume wake;
  const std::lock_guard lock(guard_);
  wake.who = queue_.claim_oldest().who;
}

void condition_variable_any::notify_all() noexcept {
  detail::intrusive_list<detail::wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    queue_.claim_all(woken);
  }
  detail::resume_all(woken);
}

void condition_variable_any::enter(detail::wait_node& node) noexcept {
  node.who->word.prepare();
  const std::lock_guard lock(guard_);
  queue_.push(node);
}

void condition_variable_any::leave(detail::wait_node& node) noexcept {
  const std::lock_guard lock(guard_);
  detail::wait_queue::remove(node);
}

}  // namespace ulexite
