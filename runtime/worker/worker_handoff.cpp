#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/runtime/worker/worker_handoff.hpp>

namespace ulexite::detail {

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
  if (home_.blocking->lend_thread(handoff_work_)) return true;
  thread.scheduler = this;
  thread.forks = &forks_;
  set_running(&self);
  leave.who_ = nullptr;
  return false;
}

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

task* scheduler::fiber_of(switch_thread& on_leave) noexcept {
  task* const who = static_cast<worker_handoff&>(on_leave).who_;
  this_thread_execution() = {};
  who->state.saved();
  return who;
}

}  // namespace ulexite::detail
