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
#include <ulexite/runtime/agent.hpp>

#include <chrono>
#include <cstdint>
#include <system_error>
#include <type_traits>

namespace ulexite {

// The clock of every deadline. Where a point in time is taken, those of other clocks do too.
using clock = std::chrono::steady_clock;

namespace detail {

// Nanoseconds of the steady clock.
inline std::int64_t now_ns() noexcept { return clock::now().time_since_epoch().count(); }

enum class cancellable : bool { no, yes };

// Suspends the calling agent, `self`, until it is claimed, `deadline` is over or, if `cancellable`, it is asked to stop
// or its own deadline is over, which both end as wake_reason::cancelled. Releases `held` once nobody can miss the wait.
wake_reason suspend(agent& self, spin_lock& held, cancellable cancellable,
                    std::int64_t deadline = no_deadline) noexcept;

// The same for one who has found out already where it runs.
wake_reason suspend(caller self, spin_lock& held, cancellable cancellable, std::int64_t deadline) noexcept;

// The same for an agent whose word is prepared, with no lock to release.
wake_reason suspend_prepared(agent& self, cancellable cancellable, std::int64_t deadline = no_deadline) noexcept;

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

// Does that agent run at this moment on a worker of the caller's runtime? A hint; the agent may be gone.
bool runs_on_a_worker(const agent* who) noexcept;

void look_whether_to_yield(agent& self) noexcept;

// Ends an operation that did not have to wait. Now and then it yields, so that a loop of such operations cannot keep
// the worker for itself.
inline void spend_budget(agent& self) noexcept {
  if (--self.budget == 0) [[unlikely]]
    look_whether_to_yield(self);
}
inline void spend_budget() noexcept { spend_budget(this_agent()); }

// A number below `bound`, which is above 0. Any thread.
std::uint32_t random_below(std::uint32_t bound) noexcept;

// A deadline `time` from now. Negative is now; what does not fit means never.
template <class Rep, class Period>
std::int64_t deadline_after(std::chrono::duration<Rep, Period> time) noexcept {
  using nanoseconds = std::chrono::duration<double, std::nano>;
  if (!(time > time.zero())) return 0;
  if (nanoseconds(time).count() >= 9e18) return no_deadline;
  const std::int64_t now = now_ns();
  const auto span = std::chrono::ceil<std::chrono::nanoseconds>(time).count();
  return span > no_deadline - now ? no_deadline : now + span;
}

// The same for a point in time. Another clock is read once, here: what happens to it during the wait is not noticed.
template <class Clock, class Duration>
std::int64_t deadline_at(std::chrono::time_point<Clock, Duration> time) noexcept {
  if constexpr (std::is_same_v<Clock, clock>) {
    using nanoseconds = std::chrono::duration<double, std::nano>;
    const auto span = time.time_since_epoch();
    if (!(span > span.zero())) return 0;
    if (nanoseconds(span).count() >= 9e18) return no_deadline;
    return std::chrono::ceil<std::chrono::nanoseconds>(span).count();
  } else {
    const auto now = Clock::now();
    return time > now ? deadline_after(time - now) : 0;
  }
}

}  // namespace detail
}  // namespace ulexite
