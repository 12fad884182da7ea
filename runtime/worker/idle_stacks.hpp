#pragma once

// Returns to the system what lies below the stack pointers of fibers that have waited for long. A fiber that was deep
// in calls once would otherwise keep that memory until it ends. The monitor walks over all fibers now and then, in
// portions, and looks at each wait once.
//
// An inspection holds the fiber meanwhile, and some beside it. Left alone are fibers that run (in block_in_place, brief
// calls too), that have not started or have ended, and stacks with a canary, which is at their low end. So is a fiber
// that waits on another stack than its own, because its own may be in use anywhere.
// All members are the monitor's own, and others only read bytes_.

#include <ulexite/base/counter.hpp>
#include <ulexite/runtime/task/task_pool.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ulexite::detail {

class inspection;
class runtime_state;

class idle_stacks {
 public:
  // Fibers that have waited for `after` are idle. 0: none are.
  idle_stacks(runtime_state& rt, std::chrono::milliseconds after) noexcept;
  idle_stacks(const idle_stacks&) = delete;
  idle_stacks& operator=(const idle_stacks&) = delete;

  // Begins a walk if one is due, and continues it for about a millisecond. Called by the monitor.
  void step(std::int64_t now) noexcept;
  // When the next step is needed if no fiber has run since `last_busy`, or no_deadline. Called by the monitor.
  [[nodiscard]] std::int64_t next_step(std::int64_t last_busy) const noexcept;

  // Bytes returned so far. Any thread.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.get(); }

 private:
  [[nodiscard]] std::optional<std::uint16_t> idle_wait(agent& block) const noexcept;
  void trim(agent& idle) noexcept;

  runtime_state& runtime_;
  const std::int64_t after_;  // ns; 0: off
  counter bytes_;
  task_pool::place at_;     // in the present walk
  bool walking_ = false;    // there is one
  std::int64_t last_walk_;  // the start of the last walk; at first, that of the runtime
  std::uint32_t now_ = 0;   // milliseconds of the steady clock at the start of this step
};

}  // namespace ulexite::detail
