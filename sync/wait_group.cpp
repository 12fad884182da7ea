#include <ulexite/sync/wait_group.hpp>

#include <string>

namespace ulexite {

void wait_group::change(std::int64_t by) {
  std::int64_t word = word_.load(std::memory_order_relaxed);  // the exchange decides
  for (;;) {
    const std::int64_t next = word + by;
    if (next < 0)
      throw usage_error("wait_group: " + std::to_string(by / one) + " to a count of " + std::to_string(word / one));
    if (next == waited_bit) return wake_all(by);
    if (word_.compare_exchange_weak(word, next, std::memory_order_release, std::memory_order_relaxed)) return;  // A
  }
}

// The count reaches zero and somebody waits. A waiter that is cancelled meanwhile takes the guard before it leaves, and
// so finds us either not begun or done: nobody can be rid of the group while we touch it.
void wait_group::wake_all(std::int64_t by) noexcept {
  detail::intrusive_list<detail::wait_node> woken;
  guard_.lock();
  if (word_.fetch_add(by, std::memory_order_acq_rel) + by == waited_bit) {  // A
    word_.fetch_sub(waited_bit, std::memory_order_relaxed);                 // guarded
    queue_.claim_all(woken);
  }
  guard_.unlock();
  detail::resume_all(woken);
}

bool wait_group::wait_until_ns(std::int64_t deadline) {
  detail::throw_if_stopped();
  if (word_.load(std::memory_order_acquire) / one == 0) {  // A
    detail::spend_budget();
    return true;
  }
  guard_.lock();
  std::int64_t word = word_.load(std::memory_order_acquire);  // A
  do {
    if (word / one == 0) {
      guard_.unlock();
      return true;
    }
  } while (!word_.compare_exchange_weak(word, word | waited_bit, std::memory_order_acquire,  // A
                                        std::memory_order_acquire));  // A
  detail::wait_node node(detail::this_agent());
  switch (detail::wait_in(queue_, guard_, node, detail::cancellable::yes, deadline)) {
    case detail::wake_reason::notified: return true;
    case detail::wake_reason::timed_out: return false;
    case detail::wake_reason::cancelled: throw operation_cancelled();
  }
  return false;
}

}  // namespace ulexite
