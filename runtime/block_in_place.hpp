#pragma once

// A blocking call on the fiber's own stack. The fiber's thread stops being a worker, and another thread takes over the
// worker with its queue. After Go's hand-off of processors around system calls (Vyukov, 2012) and tokio's
// block_in_place.

#include <ulexite/runtime/worker/worker_handoff.hpp>

#include <functional>
#include <type_traits>
#include <utility>

namespace ulexite {

// Calls `function`, which may block, and returns its result or throws its exception. During the call another thread is
// the worker, so the fibers that wait for this worker do not wait for the call. The differences from blocking(): the
// call begins without a wait, and runs on the fiber's own stack. Only the machine limits the number of such calls. Use
// it for rare and long calls, because each one wakes or makes a thread.
//
// Inside, the caller is a plain thread, as in blocking(). It may use channels and locks, and blocks in them. It must
// not unlock a mutex that the fiber has locked, and does not see the fiber's this_fiber and fiber_local. Afterwards the
// fiber waits for a worker, and continues on another thread. Not a cancellation point. If there is no other thread, on
// a plain thread, and in a job it is an ordinary call.
template <class F>
  requires std::is_invocable_v<F>
decltype(auto) block_in_place(F&& function) {
  const detail::worker_handoff away;
  return std::invoke(std::forward<F>(function));
}

}  // namespace ulexite
