#include <ulexite/base/perturb.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <string>

namespace ulexite {

void wait_group::refuse(const std::string& count) {
  throw usage_error("wait_group: a count of " + count + " is more than " + std::to_string(max()));
}

void wait_group::change_slow(std::int64_t by) {
  std::int64_t word = word_.load(std::memory_order_relaxed);  // the exchange decides
  for (;;) {
    std::int64_t next;
    if (__builtin_add_overflow(word, by, &next) || next < 0)
      throw usage_error("wait_group: " + std::to_string(by / one) + " to a count of " + std::to_string(word / one));
    if (next == waited_bit) {
      if (wake_all(word)) return;
      word = word_.load(std::memory_order_relaxed);  // the exchange decides
    } else if (word_.compare_exchange_weak(word, next, std::memory_order_release, std::memory_order_relaxed)) {  // A
      return;
    }
  }
}

// The count reaches zero and there is a waiter. False, and nothing done, if it is no longer `word`. A waiter that is
// cancelled takes the guard before it leaves. So for this waiter, the call has either not begun or is done. So no
// waiter can destroy the group while this call uses it. For the same reason waited_bit stays. If a wait that begins now
// saw a zero without the bit, it would not take the guard.
bool wait_group::wake_all(std::int64_t word) noexcept {
  detail::intrusive_list<detail::wait_node> woken;
  detail::perturb();
  guard_.lock();
  const bool zero = word_.compare_exchange_strong(word, waited_bit, std::memory_order_acq_rel,  // A
                                                  std::memory_order_relaxed);                   // tried again
  if (zero) queue_.claim_all(woken);
  guard_.unlock();
  detail::resume_all(woken);
  return zero;
}

bool wait_group::wait_until_ns(std::int64_t deadline) {
  detail::agent& self = detail::this_agent();
  detail::throw_if_stopped(self);
  if (word_.load(std::memory_order_acquire) == 0) {  // A
    detail::spend_budget(self);
    return true;
  }
  guard_.lock();
  if (zero_or_marked()) {
    guard_.unlock();
    detail::spend_budget(self);
    return true;
  }
  detail::wait_node node(self);
  return detail::wait_or_throw(queue_, guard_, node, detail::wait_kind::wait_group, this, deadline);
}

bool wait_group::zero_or_marked() noexcept {
  std::int64_t word = word_.load(std::memory_order_acquire);  // A
  do {
    if (word / one == 0) {  // the done() that made it zero has left the guard: no waiter is left
      word_.compare_exchange_strong(word, 0, std::memory_order_relaxed, std::memory_order_relaxed);  // acquired above
      return true;
    }
  } while (!word_.compare_exchange_weak(word, word | waited_bit, std::memory_order_acquire,  // A
                                        std::memory_order_acquire));  // A
  return false;
}

}  // namespace ulexite
