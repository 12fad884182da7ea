#pragma once

// The controller of a run. It lets a strategy choose, counts steps, moves the clock, and keeps the failure.

#include <ulexite/base/controller.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/memory_network.hpp>
#include <ulexite/testing/strategy.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ulexite::testing {

// The number of the calling thread's run in this process, from 1. For ulexite::mutex_check.
std::uint64_t this_run() noexcept;

class driver final : public detail::controller {
 public:
  explicit driver(const explore_options& options) noexcept;

  // Begins a run. The strategy has begun it too.
  void begin(strategy& how) noexcept;
  void end() noexcept;

  // Records a failure. Called by the fibers of the run; the first reason counts.
  void fail(const std::string& reason) {
    if (reason_.empty()) reason_ = reason.empty() ? "fail()" : reason;
  }
  void mix(std::uint64_t value) noexcept { digest_ = (digest_ ^ value) * 1099511628211U; }  // FNV-1a
  // The body has returned: the time stops from now on.
  void body_returned() noexcept { body_returned_ = true; }

  [[nodiscard]] bool has_body_returned() const noexcept { return body_returned_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint64_t points() const noexcept { return points_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::size_t choices_made() const noexcept { return made_.size(); }
  [[nodiscard]] choice_list choices() const;
  [[nodiscard]] const std::vector<std::uint32_t>& made() const noexcept { return made_; }
  // For the watchdog, which holds the guard while it reads the choices and the time.
  [[nodiscard]] detail::spin_lock& guard() noexcept { return guard_; }
  [[nodiscard]] bool in_run() const noexcept { return how_ != nullptr; }
  [[nodiscard]] std::uint64_t ticks() const noexcept { return ticks_.load(std::memory_order_relaxed); }  // hint
  [[nodiscard]] memory_network& sockets() noexcept { return sockets_; }

  std::size_t pick(std::span<const std::uint64_t> candidates, moment moment) noexcept override;
  std::uint32_t choose(std::uint32_t bound) noexcept override;
  void yielded(std::uint64_t fiber) noexcept override;
  bool idle(std::int64_t next) noexcept override;

 private:
  bool count_step() noexcept;
  void made(std::size_t choice);
  void open_window() noexcept;  // in which timers may overtake fibers
  std::size_t decide(std::span<const std::uint64_t> candidates, moment moment);
  std::size_t decide_without_yielder(std::span<const std::uint64_t> candidates, moment moment);

  const explore_options& options_;
  const std::int64_t slowness_;  // ns
  memory_network sockets_;
  std::uint64_t number_ = 0;  // of the present run in this process
  // State: steps of all runs. Written by the run's thread.
  std::atomic<std::uint64_t> ticks_{0};
  detail::spin_lock guard_;                            // of the writes to how_, made_ and now
  strategy* how_ = nullptr;                            // of the present run
  std::string reason_;                                 // of its first failure; empty: none
  std::vector<std::uint32_t> made_;                    // all its choices, in order: a replay
  std::vector<std::uint64_t> others_;                  // scratch of decide_without_yielder
  std::uint64_t steps_ = 0, points_ = 0, digest_ = 0;  // steps bound a run; points are its scheduling points
  std::uint64_t yielder_ = 0;                          // the fiber that has just yielded
  bool overtaking_ = false;                            // time was picked although fibers can run
  bool body_returned_ = false;
};

// Puts the calling thread into a run while it exists.
struct controlled_thread {
  explicit controlled_thread(detail::controller& by) noexcept { detail::set_this_controller(&by); }
  controlled_thread(const controlled_thread&) = delete;
  controlled_thread& operator=(const controlled_thread&) = delete;
  ~controlled_thread() { detail::set_this_controller(nullptr); }
};

}  // namespace ulexite::testing
