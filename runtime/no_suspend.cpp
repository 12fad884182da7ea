#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

namespace ulexite {

using detail::agent_kind;

// The fiber counts as a job, so every wait takes the slow path (suspend.cpp), which checks. Nothing else changes. A
// scope in another is only counted, because the inner one may end last (ulx_forbid_waiting in a hook).
no_suspend_scope::no_suspend_scope(std::source_location where, const char* by) {
  detail::agent& self = detail::this_agent();
  if (self.kind != agent_kind::fiber && !self.waits_forbidden) return;
  detail::rare_task_state* rare = self.fiber().rare_state_if_made();
  if (!rare && !by) rare = &self.fiber().rare_state();  // with words only, a wait is refused in general ones
  if (self.waits_forbidden && !rare) return;
  if (self.waits_forbidden) ++rare->inner_bans;
  const bool is_named =
      rare && self.waits_forbidden && (rare->waits_forbidden_by || rare->waits_forbidden_at.line() != 0);
  if (rare && !is_named) {  // the outermost scope is told, because the others end first as a rule
    rare->waits_forbidden_at = where;
    rare->waits_forbidden_by = by;
  }
  self.waits_forbidden = true;
  self.kind = agent_kind::job;
  forbidden_ = &self;
}

no_suspend_scope::~no_suspend_scope() {
  if (!forbidden_) return;
  detail::rare_task_state* const rare = forbidden_->fiber().rare_state_if_made();
  if (rare && rare->inner_bans > 0) {
    --rare->inner_bans;
    return;
  }
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
