#pragma once

// Whether this worker wakes others for what it pushes. A push is not announced for a while after a thief has measured
// that its theft here did not pay, because another worker would gain nothing. The worker takes such fibers itself. So
// it must stay awake until then, and it announces what is left at its next visit. It may be late for that, because
// fibers run longer than those before. So the monitor's tick wakes another worker for what was kept.
//
// State
//   until_   no push is announced until this time of the steady clock. Written by thieves and the owner; a hint.
//   kept_    the number of pushes since the last announcement. Owner-written; a hint for the monitor.
// All else is the owner's.

#include <ulexite/runtime/wait/time.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

class wake_hold {
 public:
  // Any thread, below.

  // A thief gained nothing by its theft.
  void hold_until(std::int64_t time) noexcept { until_.store(time, std::memory_order_relaxed); }  // hint
  [[nodiscard]] bool any_kept() const noexcept { return kept() != 0; }

  // Owner only, below.

  // Whether the push just made is not to be announced. It compares with the time that was read last. A fiber that
  // pushes much without a switch reads the clock now and then.
  [[nodiscard]] bool keeps_push() noexcept {
    if (time_ >= until_.load(std::memory_order_relaxed)) return false;  // hint
    set_kept(kept() + 1);
    if (kept() % pushes_per_time == 0) time_ = now_ns();
    return true;
  }
  // A visit or the end of a sleep. Whether pushes were kept that are to be announced now. `eager`: fibers run so long
  // that others must not wait for this worker.
  [[nodiscard]] bool announce_due(std::int64_t now, bool eager) noexcept {
    time_ = now;
    if (eager) hold_until(now);
    if (!any_kept() || now < until_.load(std::memory_order_relaxed)) return false;  // hint
    set_kept(0);
    return true;
  }

 private:
  static constexpr unsigned pushes_per_time = 16;

  [[nodiscard]] unsigned kept() const noexcept { return kept_.load(std::memory_order_relaxed); }  // hint
  void set_kept(unsigned number) noexcept { kept_.store(number, std::memory_order_relaxed); }     // hint

  std::int64_t time_ = 0;  // read last
  std::atomic<unsigned> kept_{0};
  std::atomic<std::int64_t> until_{0};
};

}  // namespace ulexite::detail
