#pragma once

// The state that stops the workers of a runtime: for a stop of the world, or an inspection of single fibers.
//
// State
//   taken    a thread stops the world, or has stopped it. One does so at a time.
//   stopped  it has. For that thread, or a hint.
//
// Pairings
//   A  start_world stores taken, release  ->  the next stop_world exchanges it, acquire: it sees the world started.
//      Both are in world_stop.cpp.

#include <ulexite/base/counter.hpp>
#include <ulexite/base/job.hpp>
#include <ulexite/fiber/fiber.hpp>
#include <ulexite/runtime/worker_parts/held_range.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace ulexite::detail {

// A fiber that kept its worker from a safepoint when the world was to be stopped.
struct late_fiber {
  std::uint64_t id = 0;  // 0: a worker between two fibers
  std::string name;
  spawn_place where;
  std::size_t worker = 0;
};

struct world_stop {
  [[nodiscard]] bool is_taken() const noexcept { return taken.load(std::memory_order_relaxed); }  // hint

  std::atomic<bool> taken{false};
  hint<bool> stopped;
  std::mutex mutex;                 // guards the rest, except inspecting and held; taken after the parker's
  bool halting = false;             // workers stay at their next safepoint
  std::condition_variable changed;  // one more worker has halted
  std::condition_variable over;     // the world was started
  std::vector<bool> halted;         // by worker
  std::mutex inspecting;            // of the inspection
  held_range held;                  // by the inspection
};

}  // namespace ulexite::detail
