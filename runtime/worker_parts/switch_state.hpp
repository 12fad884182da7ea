#pragma once

// What runs on a worker, and the data of a switch, passed from the computation that leaves its stack to its successor.
// Owner only.

#include <ulexite/base/job.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/worker_parts/tuning.hpp>

namespace ulexite::detail {

// A function to be called on the thread's own stack.
struct thread_call {
  void (*function)(void*);
  void* data;
};

// How the last computation has left its stack, and so the action that its successor owes it after the switch. The
// successor makes it visible to other threads, because only then are its registers saved.
struct post_switch {
  enum {
    nothing,            // the successor has no duty
    waiting,            // a fiber waits: commit its wait, release the lock that its queue was filled under
    yielding,           // a fiber lets others run: to the ring
    yielding_to_woken,  // a fiber changes places with the fiber that it woke: to the slot
    ended,              // the loop of a stack has nothing to run: the stack can be used again
    calling,            // a fiber wants a function called on the main stack, and continues then
  } what = nothing;
  union {
    task* who = nullptr;      // the fiber that has left
    stack* ended_stack;       // ended: the stack
    const thread_call* call;  // calling: in a frame of the fiber
  };
  spin_lock* held = nullptr;  // waiting: to be released, or null
  bool prepared = false;      // waiting: see wait_word::commit
  bool cancellable = false;   // waiting: the same

  // Each of these is called on the stack that is about to be left, just before the switch.
  void waits(task& fiber, spin_lock* lock, bool is_prepared, bool is_cancellable) noexcept {
    what = waiting;
    who = &fiber;
    held = lock;
    prepared = is_prepared;
    cancellable = is_cancellable;
  }
  void yields(task& fiber, bool to_woken = false) noexcept {
    what = to_woken ? yielding_to_woken : yielding;
    who = &fiber;
  }
  void ends(stack& left) noexcept {
    what = ended;
    ended_stack = &left;
  }
  void calls(const thread_call& wanted) noexcept {
    what = calling;
    call = &wanted;
  }
};

// Of one worker. `action` is written by the computation that leaves, just before the switch, and cleared by its
// successor. No other thread reads any of this.
struct switch_state {
  post_switch action;
  job* starting_job = nullptr;  // the first job of the stack that is being started
  // Set before a switch to a new stack, and read by the first function on it (scheduler::stack_main).
  stack* starting_stack = nullptr;  // that stack; also the stack of the running job
  context* main = nullptr;          // the thread's main stack, or that of the job that runs a bound fiber
  // The thread's main stack. It differs from `main` while a bound fiber runs; calls on the thread's stack need it then.
  context* thread_main = nullptr;
};

// What runs on a worker now: a fiber; without one a job, or the worker's own loop.
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
