#pragma once

// The state of a running worker that other threads can read: whether it is awake, its fiber, and its counters.
//
// State
//   busy_              the worker is not parked. Owner-written; a hint for the monitor and for reports.
//   running_           the agent that runs. Owner-written; a hint for waiters that decide whether to spin.
//   recorder_          where events of this worker are recorded, or null. Written by the thread that starts a trace.
//   unswitched_since_  when the monitor first saw the worker dispatch nothing between two ticks; 0: it dispatches.
//                      Written by the monitor, read as a hint.
//   thread_            the kernel's number of the thread that runs the worker. Owner-written, read as a hint.
//   counters           owner-written; read by thieves, by the monitor and for the metrics.
//
// Pairings
//   A  set_recorder stores recorder_, release  ->  the owner loads it, acquire: it sees the recorder made.

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

struct agent;
class recorder;

// A counter that one thread writes and others read.
class counter {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);  // counter, owner-written
  }
  // For the ends of fibers: a thread that gets it sees their spawns counted (fiber_counts.hpp, B).
  void add_after_others(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);  // pairs with get's load
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_acquire);  // pairs with add_after_others' store
  }

 private:
  std::atomic<std::uint64_t> value_{0};  // State: a counter, written by its worker
};

// Members that each dispatch writes come first, so that they share a cache line with running_.
struct worker_counters {
  counter dispatches, starts_in_place, steals, overflows, spawned, ended, parks, polls, events, stacks_refused,
      accepts_refused;
};

class worker_activity {
 public:
  // Owner only.
  void set_busy(bool busy) noexcept { busy_.store(busy, std::memory_order_relaxed); }                    // hint
  void set_running(const agent* who) noexcept { running_.store(who, std::memory_order_relaxed); }        // hint
  [[nodiscard]] recorder* recorder_now() noexcept { return recorder_.load(std::memory_order_acquire); }  // A

  void set_thread(int number) noexcept { thread_.store(number, std::memory_order_relaxed); }  // hint

  // Any thread.
  [[nodiscard]] int thread() const noexcept { return thread_.load(std::memory_order_relaxed); }             // hint
  [[nodiscard]] bool busy() const noexcept { return busy_.load(std::memory_order_relaxed); }                // hint
  [[nodiscard]] const agent* running() const noexcept { return running_.load(std::memory_order_relaxed); }  // hint
  void set_recorder(recorder& into) noexcept { recorder_.store(&into, std::memory_order_release); }         // A

  // The monitor writes it; any thread reads it. Nanoseconds of the steady clock.
  void set_unswitched_since(std::int64_t time) noexcept {
    unswitched_since_.store(time, std::memory_order_relaxed);  // hint
  }
  [[nodiscard]] std::int64_t unswitched_since() const noexcept {
    return unswitched_since_.load(std::memory_order_relaxed);  // hint
  }
  // The monitor only: the time `unswitched_since` about which it has written a report.
  std::int64_t reported_since = 0;

 private:
  std::atomic<bool> busy_{false};
  std::atomic<const agent*> running_{nullptr};
  std::atomic<recorder*> recorder_{nullptr};
  std::atomic<std::int64_t> unswitched_since_{0};
  std::atomic<int> thread_{0};

 public:
  worker_counters counters;
};

}  // namespace ulexite::detail
