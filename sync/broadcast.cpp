#include <ulexite/base/error.hpp>
#include <ulexite/sync/select/broadcast_core.hpp>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace ulexite::detail {

broadcast_core::broadcast_core(std::size_t capacity) {
  if (capacity == 0 || capacity > ring_.max_size())
    throw usage_error("broadcast: a capacity of " + std::to_string(capacity) + " values");
  ring_.resize(capacity);
}

// The replaced value is destroyed after the lock is released, because its destructor is code of the user.
bool broadcast_core::put(value next) noexcept {
  const yield_point at_exit;
  intrusive_list<wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    if (closed_) return false;
    ring_[end_++ % ring_.size()].swap(next);
    queue_.claim_all(woken);
  }
  resume_all(woken);
  return true;
}

bool broadcast_core::close() noexcept {
  const yield_point at_exit;
  intrusive_list<wait_node> woken;
  {
    const std::lock_guard lock(guard_);
    if (std::exchange(closed_, true)) return false;
    queue_.claim_all(woken);
  }
  resume_all(woken);
  return true;
}

bool broadcast_core::is_closed() const noexcept {
  const yield_point at_exit;
  const std::lock_guard lock(guard_);
  return closed_;
}

broadcast_core::reader broadcast_core::subscribe() const noexcept {
  const yield_point at_exit;
  const std::lock_guard lock(guard_);
  return {end_, 0};
}

channel_status broadcast_core::read_now(reader& who, value& into) noexcept {
  if (who.next == end_) return closed_ ? channel_status::closed : channel_status::would_block;
  const std::uint64_t oldest = end_ - std::min<std::uint64_t>(end_, ring_.size());
  if (who.next < oldest) who.missed += oldest - std::exchange(who.next, oldest);
  into = ring_[who.next++ % ring_.size()];
  return channel_status::ok;
}

channel_status broadcast_core::read(reader& who, value& into, std::int64_t deadline) {
  for (;;) {
    agent& self = this_agent();
    throw_if_stopped(self);
    guard_.lock();
    const channel_status status = read_now(who, into);
    if (status != channel_status::would_block || deadline == never_wait) {
      guard_.unlock();
      spend_budget(self);
      return status;
    }
    wait_node node(self);
    if (!wait_or_throw(queue_, guard_, node, wait_kind::broadcast, this, deadline)) return channel_status::timeout;
  }
}

broadcast_core::value broadcast_core::last(reader* who) const noexcept {
  const yield_point at_exit;
  const std::lock_guard lock(guard_);
  if (who) who->next = end_;
  return ring_[(end_ - 1) % ring_.size()];
}

bool broadcast_core::has_next(const reader& who) const noexcept {
  const yield_point at_exit;
  const std::lock_guard lock(guard_);
  return who.next != end_;
}

}  // namespace ulexite::detail
