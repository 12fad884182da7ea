#pragma once

// When this worker wakes another for what it makes runnable. One rule for pushes and the slot: if nothing was taken
// from this worker since it last woke another, it waits before the next wake, twice as long each time. Owner only,
// except any_suppressed.
//
// State
//   suppressed_  the number of suppressed pushes since the last announcement. Owner-written; a hint for the monitor.

#include <ulexite/base/counter.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/worker_parts/tuning.hpp>

#include <cstdint>

namespace ulexite::detail {

class wake_pause {
 public:
  [[nodiscard]] bool over(std::int64_t now) const noexcept { return now - last_ >= pause_; }
  [[nodiscard]] bool any() const noexcept { return pause_ > 0; }
  void end() noexcept { pause_ = 0; }
  // Another worker is woken. `taken`: the number of thefts from this worker so far.
  void on_wake(std::int64_t now, std::uint32_t taken) noexcept {
    pause_ = tuning::next_pause(taken != taken_, pause_, tuning::shortest_pause, tuning::longest_pause);
    last_ = now;
    taken_ = taken;
  }

 private:
  std::int64_t last_ = 0;    // wake
  std::int64_t pause_ = 0;   // ns from then to the next one
  std::uint32_t taken_ = 0;  // until then
};

class wake_policy {
 public:
  wake_pause pushes, slot;

  // Whether the push just made is not to be announced. A fiber that pushes much without a switch reads the clock for
  // the first pushes of a pause, and then now and then.
  [[nodiscard]] bool suppresses_push() noexcept {
    if (!pushes.any()) return false;
    const unsigned number = suppressed_.get() + 1;
    const bool unread = number > pushes_per_time && number % pushes_per_time != 0;
    if (!unread && pushes.over(now_ns())) {
      suppressed_.set(0);
      return false;
    }
    suppressed_.set(number);
    return true;
  }
  // Maintenance or the end of a sleep. Whether there are suppressed pushes that are to be announced now. `eager`:
  // fibers run so long that others must not wait for this worker.
  [[nodiscard]] bool announce_due(std::int64_t now, bool eager) noexcept {
    if (eager) pushes.end();
    if (!any_suppressed() || !pushes.over(now)) return false;
    suppressed_.set(0);
    return true;
  }
  // Any thread.
  [[nodiscard]] bool any_suppressed() const noexcept { return suppressed_.get() != 0; }

 private:
  static constexpr unsigned pushes_per_time = 16;

  hint<unsigned> suppressed_;
};

}  // namespace ulexite::detail
