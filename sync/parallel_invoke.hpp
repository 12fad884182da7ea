#pragma once

#include <ulexite/runtime/fork/branch.hpp>

#include <type_traits>

namespace ulexite {

// Calls all functions, and returns when all have returned. The caller runs the first function itself. Idle workers may
// take the others; the caller then runs the rest, in order. An offer that no worker takes costs nanoseconds, so a
// recursion may fork down to small pieces of work. A function that another worker takes becomes a fiber. It has the
// caller's deadline, shield and size of stack, but its own id, fiber_local values and rounding mode. It may wait for
// anything, also for the other functions (but not if max_fibers, or 1,000 branches at one worker, leave no room). While
// the caller waits for such a function, its worker runs other fibers. Before each function the caller also yields, if
// it has not yielded for some 10 ms.
//
// If functions throw, it throws the exception of the first of them, in argument order. Later functions that have begun
// are asked to stop, and the caller waits for their ends. Under a shield of the caller they ignore that. Later
// functions that have not begun are skipped (but may run if the caller has changed its worker). Earlier functions run
// to their end. If a failure would make other functions wait for ever, use when_all. A cancellation point while it
// waits: it asks the functions that run elsewhere to stop, and throws their exception.
//
// On a plain thread, in a job and in a stop callback, it calls the functions one after the other.
template <class F, class... G>
  requires(std::is_invocable_v<F&> && (std::is_invocable_v<G&> && ...))
void parallel_invoke(F&& first, G&&... others) {
  if constexpr (sizeof...(G) == 0) {
    detail::call_function(first);
  } else {
    const auto rest = [&] { parallel_invoke(others...); };
    detail::forked branch(rest);
    branch.run_while_offered(first);
    branch.finish();
  }
}

}  // namespace ulexite
