// The life of a branch after it was taken from a fork queue: it becomes a fiber, and the forking fiber waits for it.

#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/fork/branch.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

namespace ulexite::detail {

// Called by the worker that has taken the branch. The fiber is complete before its outcome is published. From then on
// the forking fiber may wait for its end, and ask it to stop.
task* branch::start(runtime_state& rt) noexcept {
  result_task<void>* made;
  try {
    made = &make_(rt, *this);
  } catch (...) {  // no memory, or max_fibers
    publish_outcome(rt, declined);
    return nullptr;
  }
  initialise(*made);
  made->make_branch_of(forking_->fiber());
  made->agent().deadline = deadline_;
  made->agent().shielded = shielded_;
  publish_outcome(rt, reinterpret_cast<std::uintptr_t>(made));
  return made;
}

// The taker's last step with the branch, except the call of its function. The waiter for the outcome goes to the shared
// queue, because a searching worker checks that queue, but not its own.
void branch::publish_outcome(runtime_state& rt, std::uintptr_t outcome) noexcept {
  perturb();
  if (agent* const waiter = outcome_.publish(outcome)) rt.inject(waiter->fiber(), priority::woken);
}

// The outcome is unknown only between the theft of the branch and the making of its fiber. This wait cannot be
// cancelled, because the taker still refers to the branch, which is in the caller's frame.
std::uintptr_t branch::wait_for_outcome() noexcept {
  if (const auto known = outcome_.known()) return known;
  agent& self = this_agent();
  perturb();
  if (outcome_.wait_for(self)) suspend_prepared(self, waiting_for(wait_kind::fork, this, cancellable::no));
  return outcome_.known();
}

// The first wait may be cancelled, so that a request to stop the caller reaches the branch. A deadline needs no such
// step, because the branch has the same one. The second wait always lasts until the fiber's end, because the fiber
// refers to this frame.
result_task<void>* branch::wait(bool stop) noexcept {
  const std::uintptr_t outcome = wait_for_outcome();
  if (outcome == declined) return nullptr;
  auto& elsewhere = *reinterpret_cast<result_task<void>*>(outcome);
  if (!stop && !elsewhere.join(no_deadline, cancellable::yes)) stop = this_agent().word.stop_requested();
  if (stop) elsewhere.request_stop();
  elsewhere.join();
  // Only the runtime asks a branch to stop while we wait, and it asks us next. So an exception of the branch is then
  // the end of a fiber that was asked to stop, and not its failure.
  if (!stop && elsewhere.agent().word.stop_requested()) this_agent().word.request_stop();
  return &elsewhere;
}

}  // namespace ulexite::detail
