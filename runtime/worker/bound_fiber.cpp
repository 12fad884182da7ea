// Bound fibers, except the switch itself (scheduler.cpp): which worker may run them, and how they get to it.

#include <ulexite/base/perturb.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/runtime/worker/strand.hpp>

namespace ulexite::detail {

// The job that represents a bound fiber in the queues. A fiber that was just pinned has no worker yet: it is this one.
void scheduler::dispatch_bound(job* dispatched) noexcept {
  task& member = *static_cast<task*>(dispatched);
  rare_task_state& rare = *member.rare_state_if_made();
  scheduler& here = *this_scheduler();
  if (here.forward_if_pinned_elsewhere(member)) return;
  // From now on this worker neither retires nor hands itself off, as long as it has a pinned fiber.
  if (rare.pins > 0 && !rare.pinned_to) {
    rare.pinned_to = &here;
    here.pin();
  }
  if (rare.member_of) {
    rare.member_of->run(member);
  } else {
    here.run_bound(member);
  }
}

// A fiber without a pin may run anywhere. A fiber that was pinned while it ran has no worker until its next dispatch.
bool scheduler::may_run(const task& member) const noexcept {
  const rare_task_state* const rare = member.rare_state_if_made();
  return !rare || !rare->pinned_to || rare->pinned_to == this;
}

// After true the fiber belongs to another worker, and may be running there already.
bool scheduler::forward_if_pinned_elsewhere(task& member) noexcept {
  if (may_run(member)) return false;
  member.rare_state_if_made()->pinned_to->give_pinned(member);
  return true;
}

// The worker sees it at its next maintenance, or looks for work once more before it sleeps.
void scheduler::give_pinned(task& member) noexcept {
  // In a queue of its own, because thieves take from all others.
  queues_.push_pinned(member);
  perturb();
  ask(request::maintenance);
  runtime_.parker.wake(*this);
}

job* scheduler::take_pinned() noexcept {
  intrusive_queue<job> one;
  queues_.take_pinned(1, one);
  return one.pop();
}

// ---- the thread's own stack ----

// The fiber leaves its stack, but stays the running one: it is not made resumable, so no other worker can have it. The
// switch goes to thread_main, because `main` may be the frame of the job that runs the bound fiber.
void scheduler::call_on_thread_stack(void (*function)(void*), void* data) noexcept {
  switch_.call = function;
  switch_.call_data = data;
  switch_.action.what = post_switch::calling;
  static_cast<scheduler&>(switch_context(running()->saved, *switch_.thread_main, *this)).complete_switch();
}

// On the thread's own stack, in run(): makes the call, during which the fiber counts as running, and switches back to
// it. Returns when the fiber leaves its stack the next time.
switch_thread* scheduler::make_call(context& main) noexcept {
  switch_.action.what = post_switch::nothing;
  set_call_for(running()->current_stack);
  switch_.call(switch_.call_data);
  set_call_for(nullptr);
  return &switch_context(main, running()->saved, *this);
}

}  // namespace ulexite::detail
