// block_in_place: the fiber keeps its thread, and the worker moves to another one. The thread is a plain one until the
// call ends. docs/scheduler.md (Blocking) describes the four steps.

#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/runtime/worker/worker_handoff.hpp>

namespace ulexite::detail {

// There is nothing to hand off on a plain thread and in a job: there the call blocks the thread. A worker with a fiber
// on a leash, or with pinned fibers, must keep its thread. A deterministic run has only one.
worker_handoff::worker_handoff() noexcept {
  scheduler* const here = this_scheduler();
  if (!here || this_agent().kind != agent_kind::fiber || !here->may_hand_off() || here->is_controlled()) return;
  if (!here->begin_handoff(*this)) return;
  static_cast<thread_agent&>(this_agent()).handed_off_fiber = who_;
}

worker_handoff::~worker_handoff() {
  if (!who_) return;
  static_cast<thread_agent&>(this_agent()).handed_off_fiber = nullptr;
  scheduler::end_handoff(*this);
}

// All of this worker is left as between two fibers before the other thread may touch it; nothing is touched after.
bool scheduler::begin_handoff(worker_handoff& leave) noexcept {
  task& self = *running();
  current_execution& thread = occupant_.execution();
  static_cast<switch_thread&>(leave) = *this;
  leave.who_ = &self;
  leave.main_ = switch_.main;
  set_running(nullptr);
  thread = {};
  perturb();
  // From here on the other thread may run this worker, and the fiber must not use it.
  if (home_.blocking->lend_thread(handoff_work_)) return true;
  thread.scheduler = this;
  thread.forks = &forks_;
  set_running(&self);
  leave.who_ = nullptr;
  return false;
}

// On the lent thread: its life as the worker. It ends with the runtime, or when this thread hands the worker off in its
// turn. Then be_worker returns the fiber of that second call, which finish() makes runnable.
void* scheduler::handoff_work::run() noexcept {
  runtime_state& home = whose.home_;
  task* const handed_off_fiber = home.threads.be_worker(whose.index_);
  home.blocking->thread_returns();
  return handed_off_fiber;
}

// The thread is free for the next such call before the fiber can make one. Any thread may have the worker by now.
void scheduler::handoff_work::finish(void* handed_off_fiber) noexcept {
  if (handed_off_fiber) whose.home_.inject(*static_cast<task*>(handed_off_fiber), turn::woken);
}

// To the main stack of the thread, which has the fiber made runnable. It continues here, on some worker.
void scheduler::end_handoff(worker_handoff& leave) noexcept {
  perturb();
  static_cast<scheduler&>(switch_context(leave.who_->saved, *leave.main_, leave)).complete_switch();
}

// The thread has left the fiber for its own main stack (end_handoff). The fiber is made resumable only now, because no
// thread uses its stack.
task* scheduler::fiber_of(switch_thread& on_leave) noexcept {
  task* const who = static_cast<worker_handoff&>(on_leave).who_;
  this_thread_execution() = {};
  who->state.saved();
  return who;
}

}  // namespace ulexite::detail
