#include <ulexite/base/error.hpp>
#include <ulexite/sync/semaphore.hpp>

#include <mutex>
#include <string>

namespace ulexite::detail {

semaphore_core::semaphore_core(std::ptrdiff_t permits, std::ptrdiff_t max) : permits_(permits) {
  if (permits < 0 || permits > max)
    throw usage_error("counting_semaphore: " + std::to_string(permits) + " permits of at most " + std::to_string(max));
}

bool semaphore_core::try_acquire() noexcept {
  const std::lock_guard lock(guard_);
  if (permits_ == 0) return false;
  --permits_;
  return true;
}

bool semaphore_core::acquire(std::int64_t deadline) {
  agent& self = this_agent();
  throw_if_stopped(self);
  guard_.lock();
  if (permits_ > 0) {
    --permits_;
    guard_.unlock();
    spend_budget(self);
    return true;
  }
  wait_node node(self);
  return wait_or_throw(queue_, guard_, node, wait_kind::semaphore, this, deadline);
}

void semaphore_core::release(std::ptrdiff_t n, std::ptrdiff_t max) {
  intrusive_list<wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    if (n < 0 || n > max - permits_)
      throw usage_error("counting_semaphore::release: " + std::to_string(n) + " to " + std::to_string(permits_) +
                        " permits of at most " + std::to_string(max));
    for (; n > 0; --n) {
      const claimed_wait next = queue_.claim_oldest();
      if (!next) break;
      if (next.who) woken.push_back(*next.node);
    }
    permits_ += n;
  }
  resume_all(woken);
}

}  // namespace ulexite::detail
