#pragma once

// The way in which all operations of this library wait.
//
// A wait that one spin lock guards: take the lock, link a node that names this_agent(), and call suspend_and_unlock.
// The lock is released once the caller's context is saved, which makes the node visible. A claimer takes the lock,
// unlinks the node and claims the agent's word (wait_word.hpp). Then it passes the value, releases the lock and resumes
// the agent. After a time-out or a cancellation the waiter takes the lock itself, and unlinks its node if it is still
// linked.
//
// A wait that may be ended before the switch: prepare the word, make the node visible, then call suspend_prepared.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <cstdint>
#include <system_error>

namespace ulexite::detail {

// Suspends the calling agent, `self`, until it is claimed or `deadline` has passed. If `mode` is cancellable, a request
// to stop or the agent's own deadline also ends the wait, both as wake_reason::cancelled. Releases `held` once no
// claimer can miss the wait.
wake_reason suspend_and_unlock(agent& self, spin_lock& held, wait_mode mode,
                               std::int64_t deadline = no_deadline) noexcept;

// As above; the caller already knows its worker.
wake_reason suspend_and_unlock(caller self, spin_lock& held, wait_mode mode, std::int64_t deadline) noexcept;

// As above, without a lock; the agent's word is prepared.
wake_reason suspend_prepared(agent& self, wait_mode mode, std::int64_t deadline = no_deadline) noexcept;

// Whether an agent runs at this moment on a worker of the caller's runtime. A hint; the agent may be destroyed.
bool runs_on_a_worker(const agent* who) noexcept;

void yield_if_budget_spent(agent& self) noexcept;

// Ends an operation that did not have to wait. Yields from time to time, so that a loop of such operations cannot keep
// the worker.
inline void spend_budget(agent& self) noexcept {
  if (--self.budget == 0) [[unlikely]]
    yield_if_budget_spent(self);
}
inline void spend_budget() noexcept { spend_budget(this_agent()); }

// ---- the checks of cancellation points before and after their waits ----

// The reason why the calling agent, `self`, must not continue at a cancellation point, or none. It is errc::cancelled,
// or errc::deadline_exceeded once a wait has met its deadline. The functions below throw accordingly. Plain threads are
// never asked to stop.
std::error_code stop_cause(const agent& self) noexcept;
[[gnu::cold]] void throw_stop_cause(const agent& self);

// Whether stop_cause may have a reason. If false, a call of it is unnecessary.
inline bool may_have_to_stop(const agent& self) noexcept { return self.word.stop_requested() || self.expired; }
inline void throw_if_stopped(const agent& self) {
  if (may_have_to_stop(self)) [[unlikely]]
    throw_stop_cause(self);
}
inline void throw_if_stopped() { throw_if_stopped(this_agent()); }
// As above, but also checks the agent's deadline, for callers without a wait.
inline void check_cancelled(agent& self) {
  if (self.deadline != no_deadline && self.deadline <= now_ns()) self.expired = true;
  throw_if_stopped(self);
}

// Throws operation_cancelled for the `cause` that an operation has met.
[[noreturn, gnu::cold]] void throw_cancelled(std::error_code cause);
// Throws after a wait that was cancelled.
[[noreturn, gnu::cold]] void throw_cancelled();

// Throws usage_error under a no_suspend_scope. For waits that are not cancellation points, before they link anything.
// Cancellation points check at their start.
[[noreturn, gnu::cold]] void throw_wait_forbidden(agent& self, wait_kind kind);
inline void check_may_wait(agent& self, wait_kind kind) {
  if (self.waits_forbidden) [[unlikely]]
    throw_wait_forbidden(self, kind);
}

}  // namespace ulexite::detail
