#pragma once

// The data of a switch on a worker, passed from the computation that leaves its stack to its successor. Owner only.

#include <ulexite/base/job.hpp>
#include <ulexite/base/spin_lock.hpp>
#include <ulexite/fiber/context.hpp>

namespace ulexite::detail {

class task;

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
  task* who = nullptr;           // the fiber that has left
  spin_lock* held = nullptr;     // waiting: to be released, or null
  bool prepared = false;         // waiting: see wait_word::commit
  bool cancellable = false;      // waiting: the same
  stack* ended_stack = nullptr;  // ended: the stack

  // Each of these is called on the stack that is about to be left, just before the switch.
  void waits(task& fiber, spin_lock* lock, bool is_prepared, bool is_cancellable) noexcept {
    what = waiting;
    who = &fiber;
    held = lock;
    prepared = is_prepared;
    cancellable = is_cancellable;
  }
  void yields(task& fiber) noexcept {
    what = yielding;
    who = &fiber;
  }
  void yields_to_woken(task& fiber) noexcept {
    what = yielding_to_woken;
    who = &fiber;
  }
  void ends(stack& left) noexcept {
    what = ended;
    ended_stack = &left;
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
  void (*call)(void*) = nullptr;  // post_switch::calling: the function
  void* call_data = nullptr;
};

}  // namespace ulexite::detail
