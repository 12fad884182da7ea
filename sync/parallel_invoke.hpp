#pragma once

#include <ulexite/runtime/fork/branch.hpp>

#include <functional>
#include <type_traits>

namespace ulexite {

// Calls all of the functions, and returns when all have returned. The first is called here; another worker that has
// nothing to do may take the others, and what it does not take is called here too, in order. A call costs nanoseconds
// unless it is taken: so a recursion may fork down to small pieces of work. What is taken becomes a fiber, with the
// caller's deadline, shield and size of stack, but its own id, fiber_local values and rounding mode; it may wait for
// anything, also for the other functions (but not if max_fibers, or 1,000 branches at one worker, leave no room).
// While the caller waits for it, its worker runs other fibers; also before a call of what nobody took, if the caller
// has not let go for some 10 ms.
//
// Throws what the first function, in their order, to throw has thrown. Of those behind it the ones that have not begun
// are not called then (or, if the caller has changed its worker meanwhile, perhaps are), and the ones that have are
// asked to stop and waited for; those before it go on to their end. So functions that would wait for ever when another
// fails are for when_all. A cancellation point while it waits: the functions called elsewhere are asked to stop, and
// what they throw is thrown.
//
// On a plain thread, in a job and in a stop callback: calls them one after the other.
template <class F, class... G>
  requires(std::is_invocable_v<F&> && (std::is_invocable_v<G&> && ...))
void parallel_invoke(F&& first, G&&... others) {
  if constexpr (sizeof...(G) == 0) {
    std::invoke(first);
  } else {
    const auto rest = [&] { parallel_invoke(others...); };
    detail::forked branch(rest);
    branch.meanwhile(first);
    branch.finish();
  }
}

}  // namespace ulexite
