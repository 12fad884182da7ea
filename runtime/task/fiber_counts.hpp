#pragma once

// The counts of a runtime's fibers that no worker keeps for itself, and the request to stop all of them.
//
// State
//   live_             fibers that live, counted only if their number is limited. Any thread.
//   spawned_outside_  fibers spawned by threads that are no worker of this runtime. Counted before they are published.
//   ended_outside_    fibers ended by such threads, as the end of a task that was never published.
//   stop_requested_   every fiber is asked to stop, now and in future. Set once, by any thread.
//
// Pairings
//   A  a spawner counts a new fiber, gives it a block, executes a light fence, then loads stop_requested_ (inherit, in
//      task.cpp)  ->  request_stop stores stop_requested_, executes a heavy fence, reads the counts, then asks every
//      block's fiber. One of the two asks the new fiber.
//   B  a fiber's end is counted, release, after its spawn  ->  runtime_state::live loads the ends, acquire, then the
//      spawns. If it has seen a fiber's end, it sees the fiber's spawn. So it never counts too few.

#include <ulexite/base/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <system_error>

namespace ulexite::detail {

class fiber_counts {
 public:
  // `most`: how many may live at a time; 0: any number.
  explicit fiber_counts(std::size_t most) noexcept : most_(most) {}
  fiber_counts(const fiber_counts&) = delete;
  fiber_counts& operator=(const fiber_counts&) = delete;

  // Whether live fibers are counted, because there is a limit.
  [[nodiscard]] bool limited() const noexcept { return most_ != 0; }
  // Counts a fiber that will be made, or that has ended, when their number is limited. The first throws
  // errc::limit_reached.
  void enter_limited() {
    const auto before = live_.fetch_add(1, std::memory_order_relaxed);  // counter
    if (before < most_) return;
    leave_limited();
    throw std::system_error(make_error_code(errc::limit_reached), std::to_string(before) + " fibers are alive");
  }
  void leave_limited() noexcept { live_.fetch_sub(1, std::memory_order_relaxed); }  // counter

  void enter_outside() noexcept { spawned_outside_.fetch_add(1, std::memory_order_seq_cst); }  // B
  void leave_outside(std::uint64_t fibers = 1) noexcept {
    ended_outside_.fetch_add(fibers, std::memory_order_release);  // B
  }
  [[nodiscard]] std::uint64_t entered_outside() const noexcept {
    return spawned_outside_.load(std::memory_order_seq_cst);  // B
  }
  [[nodiscard]] std::uint64_t left_outside() const noexcept {
    return ended_outside_.load(std::memory_order_acquire);  // B
  }

  // Followed by the heavy fence of A.
  void set_stop_requested() noexcept { stop_requested_.store(true, std::memory_order_relaxed); }  // A, by its fence
  [[nodiscard]] bool stop_requested() const noexcept {
    return stop_requested_.load(std::memory_order_relaxed);  // A, by its fence
  }
  // For the fibers' tokens.
  [[nodiscard]] const std::stop_source& stop_source() const noexcept { return stop_source_; }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> live_{0};
  std::atomic<std::uint64_t> spawned_outside_{0}, ended_outside_{0};
  std::atomic<bool> stop_requested_{false};
  std::stop_source stop_source_;
};

}  // namespace ulexite::detail
