#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

namespace ulexite {

using detail::agent_kind;
using detail::this_agent;
using detail::this_scheduler;

// A bound fiber comes back to its worker. A fiber that is bound already, as a member of a strand, stays so.
no_migration_scope::no_migration_scope() {
  detail::scheduler* const here = this_scheduler();
  const detail::agent& self = this_agent();
  if (!here || (self.kind != agent_kind::fiber && !self.waits_forbidden)) return;
  detail::rare_task_state& rare = here->running()->rare_state();
  if (self.waits_forbidden && rare.pins == 0)
    throw usage_error("no_migration_scope under a no_suspend_scope: to pin a fiber takes a switch");
  pinned_ = &rare;
  if (pinned_->pins++ > 0) return;
  if (here->is_bound()) {
    pinned_->pinned_to = here;
    here->queues.pin();
  } else {
    here->rebind();
  }
}

no_migration_scope::~no_migration_scope() {
  if (!pinned_ || --pinned_->pins > 0) return;
  pinned_->pinned_to = nullptr;
  // The guard of an abandoned fiber may be destroyed by another fiber or thread, after the fiber's worker has ended.
  detail::scheduler* const here = this_scheduler();
  if (!here || !here->running() || &here->running()->agent() != &pinned_->who) return;
  here->queues.unpin();
  if (!pinned_->member_of && this_agent().kind == agent_kind::fiber) here->rebind();  // which ends it
}

}  // namespace ulexite
