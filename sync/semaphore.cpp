#include <ulexite/base/error.hpp>
#include <ulexite/sync/semaphore.hpp>

#include <mutex>
#include <string>

namespace ulexite::detail {
namespace {

std::ptrdiff_t wanted_by(const wait_node& node) noexcept { return reinterpret_cast<std::ptrdiff_t>(node.slot); }

void check_request(const char* operation, std::ptrdiff_t n, std::ptrdiff_t max) {
  if (n < 0 || n > max)
    throw usage_error(std::string("counting_semaphore::") + operation + ": " + std::to_string(n) +
                      " permits of at most " + std::to_string(max));
}

}  // namespace

void semaphore_core::refuse(std::ptrdiff_t permits, std::ptrdiff_t max) {
  throw usage_error("counting_semaphore: " + std::to_string(permits) + " permits of at most " + std::to_string(max));
}

bool semaphore_core::take(std::ptrdiff_t n) noexcept {
  if (n > 0 && (permits_ < n || !queue_.nobody_waits())) return false;
  permits_ -= n;
  return true;
}

void semaphore_core::add_waiter(wait_node& node, std::ptrdiff_t n) noexcept {
  node.slot = reinterpret_cast<void*>(n);
  queue_.push(node);
}

void semaphore_core::serve_oldest(intrusive_list<wait_node>& woken) noexcept {
  while (!queue_.nobody_waits()) {
    const std::ptrdiff_t n = wanted_by(queue_.oldest());
    if (n > permits_) return;
    const claimed_wait claimed = queue_.claim_front();
    if (!claimed) continue;
    permits_ -= n;
    wait_queue::serve(claimed, woken);
  }
}

bool semaphore_core::try_acquire() noexcept {
  const yield_point at_exit;
  const std::lock_guard lock(guard_);
  return take(1);
}

bool semaphore_core::try_acquire(std::ptrdiff_t n, std::ptrdiff_t max) {
  const yield_point at_exit;
  check_request("try_acquire", n, max);
  const std::lock_guard lock(guard_);
  return take(n);
}

bool semaphore_core::acquire(std::ptrdiff_t n, std::ptrdiff_t max, std::int64_t deadline, wait_kind kind) {
  check_request("acquire", n, max);
  agent& self = this_agent();
  throw_if_stopped(self);
  guard_.lock();
  if (take(n)) {
    guard_.unlock();
    spend_budget(self);
    return true;
  }
  wait_node node(self);
  add_waiter(node, n);
  const wake_reason reason = suspend_and_unlock(self, guard_, waiting_for(kind, this, cancellable::yes), deadline);
  if (reason == wake_reason::notified) return true;
  intrusive_list<wait_node> woken;
  guard_.lock();
  wait_queue::remove(node);
  serve_oldest(woken);  // it may have wanted more than those behind it
  guard_.unlock();
  resume_holders(woken);
  if (reason == wake_reason::cancelled) throw_cancelled();
  return false;
}

void semaphore_core::release(std::ptrdiff_t n, std::ptrdiff_t max) {
  const yield_point at_exit;
  intrusive_list<wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    if (n < 0 || n > max - permits_)
      throw usage_error("counting_semaphore::release: " + std::to_string(n) + " to " + std::to_string(permits_) +
                        " permits of at most " + std::to_string(max));
    permits_ += n;
    serve_oldest(woken);
  }
  resume_holders(woken);
}

void semaphore_core::release_one_of(std::ptrdiff_t max) noexcept {
  const yield_point at_exit;
  intrusive_list<wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    if (permits_ < max) ++permits_;
    serve_oldest(woken);
  }
  resume_holders(woken);
}

}  // namespace ulexite::detail
