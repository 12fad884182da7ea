#pragma once

// The state of a running worker that other threads can read: its fiber, its thread, and its counters.
//
// State
//   running     the agent that runs; null while the worker is parked. Owner-written; a hint for the monitor, reports,
//               and waiters that decide whether to spin.
//   recorder_   where events of this worker are recorded, or null. Written by the thread that starts a trace.
//   thread      the kernel's number of the thread that runs the worker. Owner-written, read as a hint.
//   counters    owner-written; read by thieves, by the monitor and for the metrics.
//
// Pairings
//   A  set_recorder stores recorder_, release  ->  the owner loads it, acquire: it sees the recorder made.

#include <ulexite/base/counter.hpp>

#include <atomic>

namespace ulexite::detail {

struct agent;
class recorder;

// Members that each dispatch writes come first, so that they share a cache line with `running`.
struct worker_counters {
  counter dispatches, starts_in_place, steals, overflows, spawned, ended, parks, polls, events, stacks_refused,
      accepts_refused;
};

class worker_activity {
 public:
  [[nodiscard]] bool busy() const noexcept { return running.get(); }

  void set_recorder(recorder& into) noexcept { recorder_.store(&into, std::memory_order_release); }      // A
  [[nodiscard]] recorder* recorder_now() noexcept { return recorder_.load(std::memory_order_acquire); }  // A

  hint<const agent*> running;
  hint<int> thread;

 private:
  std::atomic<recorder*> recorder_{nullptr};

 public:
  worker_counters counters;
};

}  // namespace ulexite::detail
