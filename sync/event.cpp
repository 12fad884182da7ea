#include <ulexite/sync/event.hpp>

namespace ulexite {

void event::set() noexcept {
  const detail::yield_point at_exit;
  std::uint8_t word = word_.load(std::memory_order_relaxed);  // the exchange decides
  do {
    if (word & waited_bit) return set_and_wake();
  } while (!word_.compare_exchange_weak(word, word | set_bit, std::memory_order_release,  // A
                                        std::memory_order_relaxed));  // the exchange decides
}

// There is a waiter, or was one. A waiter may destroy the event once it has left the queue or the guard. So every use
// of the event is before the release of the guard.
void event::set_and_wake() noexcept {
  detail::intrusive_list<detail::wait_node> woken;
  guard_.lock();
  word_.fetch_or(set_bit, std::memory_order_release);  // A
  queue_.claim_all(woken);
  guard_.unlock();
  detail::resume_all(woken);
}

bool event::wait_until_ns(std::int64_t deadline, detail::wait_kind kind, const void* object) {
  detail::agent& self = detail::this_agent();
  detail::throw_if_stopped(self);
  const detail::wake_reason reason = wait_quietly(self, detail::cancellable::yes, deadline, kind, object);
  if (reason == detail::wake_reason::cancelled) detail::throw_cancelled();
  return reason == detail::wake_reason::notified;
}

detail::wake_reason event::wait_quietly(detail::agent& self, detail::cancellable cancellable, std::int64_t deadline,
                                        detail::wait_kind kind, const void* object) noexcept {
  if (word_.load(std::memory_order_acquire) == set_bit) {  // A
    detail::spend_budget(self);
    return detail::wake_reason::notified;
  }
  guard_.lock();
  if (set_or_marked()) {
    guard_.unlock();
    detail::spend_budget(self);
    return detail::wake_reason::notified;
  }
  detail::wait_node node(self);
  return detail::wait_in(queue_, guard_, node, detail::waiting_for(kind, object ? object : this, cancellable),
                         deadline);
}

bool event::set_or_marked() noexcept {
  std::uint8_t word = word_.load(std::memory_order_acquire);  // A
  do {
    if (word & set_bit) {  // the caller of set() has left the guard. A reset in between only leaves the other bit
      word_.compare_exchange_strong(word, set_bit, std::memory_order_relaxed, std::memory_order_relaxed);  // acquired
      return true;
    }
  } while (!word_.compare_exchange_weak(word, word | waited_bit, std::memory_order_acquire,  // A
                                        std::memory_order_acquire));  // A
  return false;
}

}  // namespace ulexite
