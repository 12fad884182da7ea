#pragma once

// When a worker goes to its main stack although it has work, for maintenance. It does so after some dispatches, about
// once in a poll interval, after a long turn of the ring (run_queues.hpp), and when another thread asks for it. At
// maintenance it polls the event loop, and takes from the shared queue. Owner only.

#include <ulexite/runtime/worker_parts/tuning.hpp>

#include <algorithm>
#include <cstdint>

namespace ulexite::detail {

class maintenance_pace {
 public:
  // Counts a dispatch. Whether it is the last one before maintenance.
  [[nodiscard]] bool is_last_dispatch() noexcept { return --until_maintenance_ == 0; }
  [[nodiscard]] unsigned dispatches_to_maintenance() const noexcept { return until_maintenance_; }
  // The switch after the next does maintenance, which starts no forks.
  void maintain_after_next() noexcept {
    until_maintenance_ = 1;
    forks_turn_ = true;
  }

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

  // Whether this maintenance should poll. Not if the worker has polled just now, as a worker does that mostly serves
  // events.
  [[nodiscard]] bool poll_due(std::int64_t now) const noexcept { return now - last_poll_ >= tuning::poll_interval; }
  void on_poll(std::int64_t now) noexcept { last_poll_ = now; }

  // Whether this maintenance starts a fork: every other one, so that neither the forks nor the shared queue starve.
  [[nodiscard]] bool forks_are_next() noexcept { return forks_turn_ = !forks_turn_; }

  // The clock was read. A wait notes the last time that was read, so that no switch needs to read the clock.
  void set_time(std::int64_t now) noexcept { coarse_time_ = static_cast<std::uint32_t>(now / 1'000'000); }
  // Milliseconds of the steady clock, modulo 2^32.
  [[nodiscard]] std::uint32_t coarse_time() const noexcept { return coarse_time_; }

 private:
  unsigned until_maintenance_ = 1;           // dispatches
  unsigned dispatches_per_maintenance_ = 1;  // dispatches from the last maintenance to the next
  std::uint32_t coarse_time_ = 0;
  bool forks_turn_ = false;  // the forks came first at the last maintenance
  bool eager_ = true;
  std::int64_t last_maintenance_ = 0, last_poll_ = 0;
  std::int64_t idle_ = 0;  // ns since the last maintenance
};

}  // namespace ulexite::detail
