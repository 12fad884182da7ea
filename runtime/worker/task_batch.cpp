#include <ulexite/base/controller.hpp>
#include <ulexite/runtime/task/task_batch.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

namespace ulexite::detail {

void task_batch::publish() noexcept {
  const yield_point at_exit;
  scheduler* const here = this_scheduler();
  if (here && &here->home() == &home_) {
    here->add(made_);
  } else {
    home_.inject(made_);
  }
}

void task_batch::abandon() noexcept {
  while (job* const next = made_.pop()) static_cast<task*>(next)->abandon();
}

}  // namespace ulexite::detail
