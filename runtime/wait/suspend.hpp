#pragma once

// The way in which all operations of this library wait.
//
// A wait that one spin lock guards: take the lock, link a node that names this_agent(), and call suspend with the lock.
// The lock is released once the caller's context is saved, which makes the node visible. A claimer takes the lock,
// unlinks the node and claims the agent's word (wait_word.hpp). Then it passes the value, releases the lock and resumes
// the agent. After a time-out or a cancellation the waiter takes the lock itself, and unlinks its node if it is still
// linked.
//
// A wait that may be ended before the switch: prepare the word, make the node visible, then call suspend_prepared.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/wait/cancellation_checks.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <cstdint>

namespace ulexite::detail {

// Suspends the calling agent, `self`, until it is claimed or `deadline` has passed. If `mode` is cancellable, a request
// to stop or the agent's own deadline also ends the wait, both as wake_reason::cancelled. Releases `held` once no
// claimer can miss the wait.
wake_reason suspend(agent& self, spin_lock& held, wait_mode mode, std::int64_t deadline = no_deadline) noexcept;

// As above; the caller already knows its worker.
wake_reason suspend(caller self, spin_lock& held, wait_mode mode, std::int64_t deadline) noexcept;

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

}  // namespace ulexite::detail
