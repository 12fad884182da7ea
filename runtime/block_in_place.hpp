#pragma once

// A blocking stretch of a fiber, on its own stack: the thread it runs on stops being a worker, and another takes over
// the worker with all that waits for it. After Go's hand-off of processors around system calls (Vyukov, 2012) and
// tokio's function of that name.

#include <ulexite/runtime/worker/worker_handoff.hpp>

#include <functional>
#include <type_traits>
#include <utility>

namespace ulexite {
// Calls `function` and returns what it gives or throws, while another thread does this worker's duty: fibers that wait
// for this worker do not wait for the call. Unlike blocking() the call begins at once, on the fiber's own stack, and
// there is no limit but the machine's: so it is for calls that are rare and long, since the other thread must be woken
// or made each time.
//
// Inside, the caller is a plain thread, as in blocking(): it may use channels and locks, and really blocks in them; it
// must not unlock what the fiber has locked; this_fiber and fiber_local are not the caller's. Afterwards the fiber
// waits for a worker, and goes on on another thread. Not a cancellation point. Without another thread to be had, on a
// plain thread, and in a job: an ordinary call.
template <class F>
  requires std::is_invocable_v<F>
decltype(auto) block_in_place(F&& function) {
  const detail::worker_handoff away;
  return std::invoke(std::forward<F>(function));
}

}  // namespace ulexite
