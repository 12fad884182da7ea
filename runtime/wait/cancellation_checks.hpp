#pragma once

// The checks of cancellation points before and after their waits.

#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <system_error>

namespace ulexite::detail {

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
