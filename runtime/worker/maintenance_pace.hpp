#pragma once

// When a worker goes to its main stack although it has work, for maintenance. It does so after some dispatches, about
// once in a poll interval, and when another thread asks for it. At maintenance it polls the event loop, and takes from
// the shared queue. Owner only.

#include <ulexite/runtime/worker/tuning.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ulexite::detail {

class maintenance_pace {
 public:
  // Counts a dispatch. False: do maintenance instead.
  [[nodiscard, gnu::always_inline]] bool count_dispatch() noexcept {
    if (until_maintenance_ == 0) return false;
    --until_maintenance_;
    return true;
  }
  [[nodiscard]] bool maintenance_due() const noexcept { return until_maintenance_ == 0; }
  [[nodiscard]] unsigned dispatches_to_maintenance() const noexcept { return until_maintenance_; }
  // The next dispatch does maintenance.
  void maintain_soon() noexcept { until_maintenance_ = 0; }
  void maintain_after_next() noexcept { until_maintenance_ = std::min(until_maintenance_, 1u); }
  // While a bound fiber runs, no dispatch is counted, and each switch goes to the main stack. suspend_count returns the
  // count at which resume_count continues.
  [[nodiscard]] unsigned suspend_count() noexcept { return std::exchange(until_maintenance_, 0); }
  void resume_count(unsigned left) noexcept { until_maintenance_ = left == 0 || asked_ ? 0 : left - 1; }

  // Another thread has asked for maintenance.
  void request_maintenance() noexcept { asked_ = true; }
  [[nodiscard]] bool maintenance_requested() const noexcept { return asked_; }
  void maintenance_done() noexcept { asked_ = false; }

  // Maintenance begins. As many dispatches follow up to the next one as fit into a poll interval, if they last as long
  // as those before. Their number at most doubles, because a single short fiber among long ones says little, and 61
  // long ones after it would delay events.
  void begin_maintenance(std::int64_t now) noexcept {
    const std::int64_t elapsed = std::max<std::int64_t>(now - last_maintenance_, 1);
    eager_ = tuning::is_eager(elapsed - idle_, dispatches_per_maintenance_);
    idle_ = 0;
    const std::int64_t fitting = tuning::poll_interval * dispatches_per_maintenance_ / elapsed;
    const std::int64_t most = std::min(2 * dispatches_per_maintenance_, tuning::most_dispatches_per_maintenance);
    dispatches_per_maintenance_ = static_cast<unsigned>(std::clamp<std::int64_t>(fitting, 1, most));
    until_maintenance_ = dispatches_per_maintenance_;
    last_maintenance_ = now;
    set_time(now);
  }
  // Whether fibers run so long that the event loop must not wait for this worker.
  [[nodiscard]] bool eager() const noexcept { return eager_; }
  // The worker has slept or searched for so long since the last maintenance. Fibers that wait for events do not run
  // long.
  void add_idle_time(std::int64_t time) noexcept { idle_ += time; }

  // Whether this maintenance should poll. Not if the worker has polled since the last maintenance, as a worker does
  // that mostly serves events.
  [[nodiscard]] bool poll_due(std::int64_t now) noexcept {
    if (std::exchange(polled_, false) || now - last_poll_ < tuning::poll_interval) return false;
    last_poll_ = now;
    return true;
  }
  void on_poll() noexcept { polled_ = true; }
  void forget_poll() noexcept { polled_ = false; }

  // The running fiber only lets others go first, so the next maintenance leaves it the forks that it has made.
  void leave_forks() noexcept { leave_forks_ = true; }
  [[nodiscard]] bool take_leave_forks() noexcept { return std::exchange(leave_forks_, false); }
  // Whether the forks come before the shared queue at this maintenance: at every other one, so that neither starves the
  // other.
  [[nodiscard]] bool forks_first(bool leave_forks) noexcept { return forks_turn_ = !forks_turn_ && !leave_forks; }

  // The clock was read. A wait notes the last time that was read, so that no switch needs to read the clock.
  void set_time(std::int64_t now) noexcept { coarse_time_ = static_cast<std::uint32_t>(now / 1'000'000); }
  // Milliseconds of the steady clock, modulo 2^32.
  [[nodiscard]] std::uint32_t coarse_time() const noexcept { return coarse_time_; }

 private:
  unsigned until_maintenance_ = 1;           // dispatches
  unsigned dispatches_per_maintenance_ = 1;  // dispatches from the last maintenance to the next
  std::uint32_t coarse_time_ = 0;
  bool asked_ = false;        // by request::maintenance, since the last maintenance
  bool polled_ = false;       // since the last maintenance
  bool forks_turn_ = false;   // the forks came first at the last maintenance
  bool leave_forks_ = false;  // at the next maintenance
  bool eager_ = true;
  std::int64_t last_maintenance_ = 0, last_poll_ = 0;
  std::int64_t idle_ = 0;  // ns since the last maintenance
};

}  // namespace ulexite::detail
