#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/here.hpp>
#include <ulexite/runtime/scheduler.hpp>

namespace ulexite::detail {

leave_of_absence::leave_of_absence() noexcept {
  scheduler* const here = this_scheduler();
  if (!here || this_agent().kind != agent_kind::fiber || !here->hand_over(*this)) return;
  static_cast<thread_agent&>(this_agent()).fiber_on_leave = who_;
}

leave_of_absence::~leave_of_absence() {
  if (!who_) return;
  static_cast<thread_agent&>(this_agent()).fiber_on_leave = nullptr;
  scheduler::come_back(*this);
}

// All of this worker is left as between two fibers before the other thread may touch it; nothing is touched after.
bool scheduler::hand_over(leave_of_absence& leave) noexcept {
  task& self = *current_;
  whereabouts& thread = *whereabouts_;
  static_cast<switch_thread&>(leave) = *this;
  leave.who_ = &self;
  leave.main_ = main_;
  set_running(nullptr);
  thread = {};
  perturb();
  if (home_.blocking->lend_thread(relay_)) return true;
  thread.scheduler = this;
  set_running(&self);
  leave.who_ = nullptr;
  return false;
}

void* scheduler::relay::run() noexcept {
  core& home = whose.home_;
  task* const fiber_on_leave = home.be_worker(whose.index_);
  home.blocking->thread_returns();
  return fiber_on_leave;
}

// The thread is free for the next such call before the fiber can make one. The worker may be anybody's by now.
void scheduler::relay::finish(void* fiber_on_leave) noexcept {
  if (fiber_on_leave) whose.home_.inject(*static_cast<task*>(fiber_on_leave));
}

// To the main stack of the thread, which has the fiber made runnable. It goes on here, on some worker.
void scheduler::come_back(leave_of_absence& leave) noexcept {
  perturb();
  static_cast<scheduler&>(switch_context(leave.who_->saved, *leave.main_, leave)).complete_switch();
}

task* scheduler::fiber_of(switch_thread& on_leave) noexcept {
  task* const who = static_cast<leave_of_absence&>(on_leave).who_;
  this_thread_whereabouts() = {};
  who->state.saved();
  return who;
}

}  // namespace ulexite::detail
