#include <ulexite/base/controller.hpp>
#include <ulexite/runtime/task/task_batch.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

namespace ulexite::detail {

// All fibers become visible together, with one notification: in the worker's ring, or from another thread in the shared
// queue.
void task_batch::publish() noexcept {
  const yield_point at_exit;
  scheduler* const here = this_scheduler();
  if (here && &here->runtime() == &runtime_) {
    here->add(made_);
  } else {
    runtime_.inject(made_);
  }
}

// A task that was made but not published ends as abandoned, so that it is no longer counted.
void task_batch::abandon() noexcept {
  while (job* const next = made_.pop()) static_cast<task*>(next)->abandon();
}

}  // namespace ulexite::detail
