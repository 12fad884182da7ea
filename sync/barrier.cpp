#include <ulexite/base/error.hpp>
#include <ulexite/sync/barrier.hpp>

#include <mutex>
#include <string>

namespace ulexite::detail {

void barrier_core::refuse(std::ptrdiff_t expected) {
  throw usage_error("barrier: " + std::to_string(expected) + " expected");
}

barrier_core::arrival barrier_core::arrive(std::ptrdiff_t n, bool& last) {
  const yield_point at_exit;
  const std::lock_guard lock(guard_);
  if (n <= 0 || n > missing_)
    throw usage_error("barrier::arrive: " + std::to_string(n) + " of " + std::to_string(missing_) + " missing");
  missing_ -= n;
  last = missing_ == 0;
  return {this, phase_};
}

bool barrier_core::drop() {
  const yield_point at_exit;
  const std::lock_guard lock(guard_);
  if (missing_ == 0) throw usage_error("barrier::arrive_and_drop: 0 missing");
  --expected_;
  return --missing_ == 0;
}

bool barrier_core::drop(arrival& arrival) {
  const yield_point at_exit;
  check(arrival);
  {
    const std::lock_guard lock(guard_);
    if (phase_ == arrival.phase_) {
      if (expected_ == 0) throw usage_error("barrier::drop: 0 expected");
      --expected_;
      arrival.at_ = nullptr;
      return false;
    }
  }
  const bool last = drop();
  arrival.at_ = nullptr;
  return last;
}

void barrier_core::complete() noexcept {
  const yield_point at_exit;
  intrusive_list<wait_node> woken;
  guard_.lock();
  ++phase_;
  missing_ = expected_;
  queue_.claim_all(woken);
  guard_.unlock();
  resume_all(woken);
}

void barrier_core::check(const arrival& arrival) const {
  if (arrival.at_ != this)
    throw usage_error(arrival.at_ ? "barrier: a token of another barrier" : "barrier: a spent token");
}

void barrier_core::wait(arrival& arrival) {
  check(arrival);
  agent& self = this_agent();
  throw_if_stopped(self);
  guard_.lock();
  if (phase_ != arrival.phase_) {
    guard_.unlock();
    arrival.at_ = nullptr;
    spend_budget(self);
    return;
  }
  wait_node node(self);
  wait_or_throw(queue_, guard_, node, wait_kind::barrier, this);
  arrival.at_ = nullptr;
}

}  // namespace ulexite::detail
