#pragma once

// What runs on a worker now: a fiber; without one a job, or the worker's own loop. Owner only.

#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/worker/tuning.hpp>

namespace ulexite::detail {

class current_task {
 public:
  current_task() noexcept { job_agent_.kind = agent_kind::job; }
  current_task(const current_task&) = delete;
  current_task& operator=(const current_task&) = delete;

  // The running fiber; null while a job or the loop runs.
  [[nodiscard]] task* fiber() const noexcept { return fiber_; }
  // The record of the thread that runs the worker: what this_agent() and this_scheduler() read.
  [[nodiscard]] current_execution& execution() noexcept { return *execution_; }

  // The worker goes to the calling thread.
  void move_to_this_thread() noexcept { execution_ = &this_thread_execution(); }
  [[nodiscard]] agent& job_agent() noexcept { return job_agent_; }

  // `next` runs from now on, or a job if that is null. Returns its agent.
  agent& set(task* next) noexcept {
    fiber_ = next;
    agent& now = next ? next->agent() : job_agent_;
    execution_->agent = &now;
    return now;
  }

  // The quantum of `next`, which runs, begins with the budget of its first round.
  void begin_budget(task* next) noexcept {
    if (next) next->agent().budget = tuning::operations_per_round;
    rounds_ = 0;
  }
  // A round of operations is over. Returns whether that was the last one of the quantum.
  [[nodiscard]] bool next_round() noexcept {
    fiber_->agent().budget = tuning::operations_per_round;
    return ++rounds_ >= tuning::rounds_per_quantum;
  }
  // For a fiber of a deterministic run, and for one that must not yield yet: the next operation asks again.
  void end_round_at_next_operation() noexcept { fiber_->agent().budget = 1; }

 private:
  // What it points to is written at each switch. The pointer changes only when the worker changes its thread.
  current_execution* execution_ = nullptr;
  task* fiber_ = nullptr;
  agent job_agent_;      // of every job that runs here, and of the loop
  unsigned rounds_ = 0;  // of operations, since the running fiber's quantum began
};

}  // namespace ulexite::detail
