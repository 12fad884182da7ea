#pragma once

// How everything in this library waits.
//
// A wait that one spin lock guards: take the lock, link a node that names this_agent(), and call suspend with that
// lock. It is released once the caller's context is saved, which is what makes the node visible. Who ends the wait
// takes the lock, unlinks the node, claims the agent's word (wait_word.hpp), hands over what there is, releases the
// lock and resumes the agent. After a time-out or a cancellation the waiter takes the lock itself and unlinks its node
// if it is still linked.
//
// A wait for something that may come before the switch: prepare the word, make the node visible, then suspend_prepared.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/wait/cancellation_checks.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <cstdint>

namespace ulexite::detail {

// Suspends the calling agent, `self`, until it is claimed, `deadline` is over or, if `mode` is cancellable, it is asked
// to stop or its own deadline is over, which both end as wake_reason::cancelled. Releases `held` once no claimer can
// miss the wait.
wake_reason suspend(agent& self, spin_lock& held, wait_mode mode, std::int64_t deadline = no_deadline) noexcept;

// The same for one who has found out already where it runs.
wake_reason suspend(caller self, spin_lock& held, wait_mode mode, std::int64_t deadline) noexcept;

// The same for an agent whose word is prepared, with no lock to release.
wake_reason suspend_prepared(agent& self, wait_mode mode, std::int64_t deadline = no_deadline) noexcept;

// Does that agent run at this moment on a worker of the caller's runtime? A hint; the agent may be gone.
bool runs_on_a_worker(const agent* who) noexcept;

void yield_if_budget_spent(agent& self) noexcept;

// Ends an operation that did not have to wait. Now and then it yields, so that a loop of such operations cannot keep
// the worker for itself.
inline void spend_budget(agent& self) noexcept {
  if (--self.budget == 0) [[unlikely]]
    yield_if_budget_spent(self);
}
inline void spend_budget() noexcept { spend_budget(this_agent()); }

}  // namespace ulexite::detail
