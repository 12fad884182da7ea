#pragma once

// When a worker visits its main stack although it has work. It does so after some dispatches, about once in a poll
// interval, and when another thread asks for it. At a visit it polls the event loop, and takes from the shared queue.
// Owner only.

#include <ulexite/runtime/worker/tuning.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ulexite::detail {

class visit_pace {
 public:
  // Counts a dispatch. False: make a visit instead.
  [[nodiscard, gnu::always_inline]] bool count_dispatch() noexcept {
    if (until_visit_ == 0) return false;
    --until_visit_;
    return true;
  }
  [[nodiscard]] bool visit_due() const noexcept { return until_visit_ == 0; }
  [[nodiscard]] unsigned dispatches_to_visit() const noexcept { return until_visit_; }
  // The next dispatch makes a visit.
  void visit_soon() noexcept { until_visit_ = 0; }
  void visit_after_next() noexcept { until_visit_ = std::min(until_visit_, 1u); }
  // While a bound fiber runs each switch makes a visit. suspend_count returns the count at which resume_count
  // continues.
  [[nodiscard]] unsigned suspend_count() noexcept { return std::exchange(until_visit_, 0); }
  void resume_count(unsigned left) noexcept { until_visit_ = left == 0 || asked_ ? 0 : left - 1; }

  // Another thread has asked for a visit.
  void ask_visit() noexcept { asked_ = true; }
  [[nodiscard]] bool visit_asked() const noexcept { return asked_; }
  void visit_done() noexcept { asked_ = false; }

  // A visit begins: as many dispatches to the next one as fit into a poll interval, by the last one's measure. They at
  // most double, because a single short fiber among long ones says little. After it, 61 long ones would delay events.
  void begin_visit(std::int64_t now) noexcept {
    const std::int64_t elapsed = std::max<std::int64_t>(now - last_visit_, 1);
    eager_ = tuning::is_eager(elapsed - idle_, quanta_per_visit_);
    idle_ = 0;
    const std::int64_t fitting = tuning::poll_interval * quanta_per_visit_ / elapsed;
    const std::int64_t most = std::min(2 * quanta_per_visit_, tuning::dispatches_per_visit);
    quanta_per_visit_ = static_cast<unsigned>(std::clamp<std::int64_t>(fitting, 1, most));
    until_visit_ = quanta_per_visit_;
    last_visit_ = now;
    note_time(now);
  }
  // Whether fibers run so long that the event loop must not wait for this worker.
  [[nodiscard]] bool eager() const noexcept { return eager_; }
  // The worker has slept or searched for so long since the last visit. Fibers that wait for events do not run long.
  void note_idle(std::int64_t time) noexcept { idle_ += time; }

  // Whether this visit should poll. Not if the worker has polled since the last visit, as a worker does that mostly
  // serves events.
  [[nodiscard]] bool poll_due(std::int64_t now) noexcept {
    if (std::exchange(polled_, false) || now - last_poll_ < tuning::poll_interval) return false;
    last_poll_ = now;
    return true;
  }
  void note_poll() noexcept { polled_ = true; }
  void forget_poll() noexcept { polled_ = false; }

  // The running fiber only lets others go first, so the next visit leaves it the forks that it has made.
  void leave_forks() noexcept { leave_forks_ = true; }
  [[nodiscard]] bool take_leave_forks() noexcept { return std::exchange(leave_forks_, false); }
  // Whether the forks come before the shared queue at this visit: at every other one, so that neither starves the
  // other.
  [[nodiscard]] bool forks_first(bool leave_forks) noexcept { return forks_turn_ = !forks_turn_ && !leave_forks; }

  // The clock was read. A wait notes the last time that was read, so that no switch needs to read the clock.
  void note_time(std::int64_t now) noexcept { coarse_time_ = static_cast<std::uint32_t>(now / 1'000'000); }
  // Milliseconds of the steady clock, modulo 2^32.
  [[nodiscard]] std::uint32_t coarse_time() const noexcept { return coarse_time_; }

 private:
  unsigned until_visit_ = 1;       // dispatches
  unsigned quanta_per_visit_ = 1;  // dispatches from the last visit to the next
  std::uint32_t coarse_time_ = 0;
  bool asked_ = false;        // by request::visit, since the last visit
  bool polled_ = false;       // since the last visit
  bool forks_turn_ = false;   // the forks came first at the last visit
  bool leave_forks_ = false;  // at the next visit
  bool eager_ = true;
  std::int64_t last_visit_ = 0, last_poll_ = 0;
  std::int64_t idle_ = 0;  // ns since the last visit
};

}  // namespace ulexite::detail
