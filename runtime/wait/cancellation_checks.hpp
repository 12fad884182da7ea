#pragma once

// What cancellation points ask before and after they wait.

#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <stop_token>
#include <system_error>

namespace ulexite::detail {

// Why the calling agent, `self`, may not go on at a cancellation point: errc::cancelled, errc::deadline_exceeded once a
// wait has met its deadline, or nothing. The rest below throws accordingly. Plain threads are never asked to stop.
std::error_code stop_cause(const agent& self) noexcept;
[[gnu::cold]] void throw_stop_cause(const agent& self);

// False: a look into stop_cause is needless.
inline bool may_have_to_stop(const agent& self) noexcept { return self.word.stop_requested() || self.expired; }
inline void throw_if_stopped(const agent& self) {
  if (may_have_to_stop(self)) [[unlikely]]
    throw_stop_cause(self);
}
inline void throw_if_stopped() { throw_if_stopped(this_agent()); }
// The same where no wait has looked at the agent's deadline.
inline void check_cancelled(agent& self) {
  if (self.deadline != no_deadline && self.deadline <= now_ns()) self.expired = true;
  throw_if_stopped(self);
}

// Throws the operation_cancelled that an operation met as `cause`.
[[noreturn, gnu::cold]] void throw_cancelled(std::error_code cause);
// After a wait that was cancelled.
[[noreturn, gnu::cold]] void throw_cancelled();

// Throws usage_error under no_suspend. For waits that are no cancellation points, before they link anything; the others
// are refused where they begin.
[[noreturn, gnu::cold]] void throw_wait_forbidden(agent& self, wait_kind kind);
inline void check_may_wait(agent& self, wait_kind kind) {
  if (self.waits_forbidden) [[unlikely]]
    throw_wait_forbidden(self, kind);
}

// Requests a stop, and so runs callbacks of the user's. A fiber may not wait in them: what holds for std::stop_callback
// on threads, that the one who destroys it waits for a call under way elsewhere, is decided by the thread that made the
// request, and a fiber that waits leaves that to others.
void run_stop_callbacks(std::stop_source source) noexcept;

}  // namespace ulexite::detail
