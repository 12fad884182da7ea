#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

namespace ulexite {

using detail::agent_kind;

// As a job it is sent the long way by whatever waits (suspend.cpp), and otherwise left in peace.
no_suspend::no_suspend(std::source_location where) {
  detail::agent& self = detail::this_agent();
  if (self.kind != agent_kind::fiber) return;
  self.fiber().rare_state().waits_forbidden_at = where;
  self.waits_forbidden = true;
  self.kind = agent_kind::job;
  forbidden_ = &self;
}

no_suspend::~no_suspend() {
  if (!forbidden_) return;
  forbidden_->kind = agent_kind::fiber;
  forbidden_->waits_forbidden = false;
}

bool detail::can_leave_for_thread_stack() noexcept {
  return this_scheduler() && this_agent().kind == agent_kind::fiber;
}

void detail::call_on_thread_stack(void (*function)(void*), void* data) noexcept {
  this_scheduler()->call_on_thread_stack(function, data);
}

}  // namespace ulexite
