#pragma once

// Deadlines for a computation, and the request to a std::stop_source of the program's own. Other requests to stop are
// made by join_handle::request_stop, task_group and the runtime's end.
//
// After Trio's cancel scopes (Smith, 2018). A deadline is a value of the fiber. Each wait uses its own timer for it, so
// a scope arms no timer and has nothing to undo.

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/shield.hpp>
#include <ulexite/runtime/task/spawned_result.hpp>
#include <ulexite/runtime/wait/stop_callbacks.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace ulexite {

// A deadline for the rest of a block. Cancellation points of the calling fiber (or plain thread) do not wait past it:
// they throw deadline_exceeded. Each later one throws too. An operation that does not have to wait does not read the
// clock, but this_fiber::check() does. Scopes nest, and the nearest deadline counts. Fibers that are spawned inside
// inherit the deadline.
//
// A scope must end in the function and the fiber that began it, the innermost first.
class deadline_scope {
 public:
  // Begins a scope that ends after `time`, or at `time`.
  [[nodiscard]] explicit deadline_scope(relative_timeout time) noexcept : deadline_scope(time.deadline()) {}
  [[nodiscard]] explicit deadline_scope(absolute_timeout time) noexcept : deadline_scope(time.deadline()) {}
  deadline_scope(const deadline_scope&) = delete;
  deadline_scope& operator=(const deadline_scope&) = delete;
  ~deadline_scope() {
    if (deadline_ >= outer_) return;
    self_.deadline = outer_;
    self_.expired = expired_;
  }

  // Whether the time of this scope has passed.
  [[nodiscard]] bool expired() const noexcept { return deadline_ <= detail::now_ns(); }

 private:
  explicit deadline_scope(std::int64_t deadline) noexcept
      : self_(detail::this_agent()), expired_(self_.expired), outer_(self_.deadline), deadline_(deadline) {
    self_.deadline = std::min(outer_, deadline_);
  }

  detail::agent& self_;
  const bool expired_;                   // whether the outer deadline had been met
  const std::int64_t outer_, deadline_;  // the deadline before this scope, and that of this scope
};

namespace detail {

// A coroutine would only be made in the scope.
template <class F>
constexpr void check_runs_in_scope() {
  static_assert(!makes_coroutine<F>,
                "the time limit would end before the coroutine runs: await it in the block of a deadline_scope");
}

}  // namespace detail

// Calls `function` in a deadline_scope of `time`, and returns its result. Throws deadline_exceeded if a cancellation
// point inside met the deadline.
template <class Time, class F>
  requires std::is_constructible_v<deadline_scope, Time>
decltype(auto) timeout(Time time, F&& function) {
  detail::check_runs_in_scope<F>();
  const deadline_scope scope(time);
  return std::forward<F>(function)();
}

// Calls `function` in a deadline_scope of `time`. Returns its result in an optional, or true if it has none; nullopt or
// false if the time has ended it. Throws deadline_exceeded if a deadline of a caller is over too, or one that
// `function` set is over first. So a loop of tries ends with its caller's deadline. As move_on_after of Trio (Smith,
// 2018).
template <class Time, class F>
  requires std::is_constructible_v<deadline_scope, Time>
[[nodiscard]] auto try_for(Time time, F&& function) {
  detail::check_runs_in_scope<F>();
  using result = std::invoke_result_t<F>;
  static_assert(!std::is_reference_v<result>,
                "try_for gives an optional, which cannot hold a reference: use a pointer");
  using outcome = std::conditional_t<std::is_void_v<result>, bool, std::optional<result>>;
  const std::int64_t outer = detail::this_agent().deadline;
  const deadline_scope scope(time);
  try {
    if constexpr (std::is_void_v<result>) {
      std::forward<F>(function)();
      return true;
    } else {
      return outcome(std::in_place, std::forward<F>(function)());
    }
  } catch (const deadline_exceeded&) {
    if (!scope.expired() || outer <= detail::now_ns()) throw;
    return outcome();
  }
}

// Requests a stop from the program's own source, as source.request_stop() does. It runs the callbacks, and returns
// whether this was the first request. Call it in fibers, because the destructor of a std::stop_callback relies on the
// callback's thread: in these callbacks no operation yields, and one that has to wait ends the process with a report.
// Inside source.request_stop() it would suspend the fiber instead. On a plain thread there is no difference.
inline bool request_stop(std::stop_source& source) noexcept { return detail::run_stop_callbacks(source); }

}  // namespace ulexite
