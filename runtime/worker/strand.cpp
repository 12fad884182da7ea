// Bound fibers, except the switch itself (scheduler.cpp): how a fiber enters and leaves a strand, how members take
// turns (strand_turn.hpp has the protocol), which worker may run a bound fiber, and how it gets there.

#include <ulexite/base/perturb.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/wait/stop_callbacks.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/runtime/worker/strand.hpp>

#include <utility>

namespace ulexite::detail {
namespace {

// Members that run one after the other before others of the worker have a turn.
constexpr unsigned members_per_run = 32;

}  // namespace

// If the fiber has not started, it gets the `run` of a bound fiber here. The running fiber gets it when it leaves its
// stack (scheduler::rebind). The request to stop is checked under the lock: either request_stop finds the new member in
// the list, or the request is found here.
void strand::add_member(task& fresh) {
  rare_task_state& member = fresh.rare_state();
  fresh.change_strand(this);
  retain();
  if (fresh.state.phase() == fiber_phase::fresh) fresh.run = scheduler::dispatch_bound;
  const std::lock_guard lock(lock_);
  members_.push_back(member);
  if (stop_requested_) member.who.word.request_stop();
}

// The last member to leave ends the wait of wait_until_empty. release() comes last, because it may delete the strand.
void strand::remove_member(rare_task_state& member) noexcept {
  // The waiter is resumed after the lock is released, because it may then run on another worker and use the lock.
  agent* waiter = nullptr;
  {
    const std::lock_guard lock(lock_);
    members_.remove(member);
    if (members_.empty() && waiter_ && waiter_->word.claim(wake_reason::notified) == claim_result::won)
      waiter = std::exchange(waiter_, nullptr);
  }
  if (waiter) resume(*waiter);
  release();
}

bool strand::another_waits() const noexcept { return waiter_ && !waiter_->word.abandoned(); }

bool strand::is_waited_for() noexcept {
  const std::lock_guard lock(lock_);
  return another_waits();
}

// For the destructor and wait() of a concurrent_context. There is one place for a waiter.
bool strand::wait_until_empty() noexcept {
  lock_.lock();
  const bool refused = another_waits();
  if (members_.empty() || refused) {
    lock_.unlock();
    return !refused;
  }
  agent& self = this_agent();
  waiter_ = &self;
  // The lock is released after the switch, so the last member cannot leave in between without seeing the waiter.
  suspend_and_unlock(self, lock_, waiting_for(wait_kind::context, this, cancellable::no));
  return true;
}

// As in runtime_state::request_stop: requests, then a heavy fence, then the ends of waits. The list may change between
// the two critical sections. A member that has left needs no wake; a new member has got the request from add_member.
void strand::request_stop() noexcept {
  {
    const std::lock_guard lock(lock_);
    if (std::exchange(stop_requested_, true)) return;
    members_.for_each([](rare_task_state& member) { member.who.word.request_stop(); });
  }
  run_stop_callbacks(stop_source_);
  std_atomics::heavy_fence();  // wait_word.hpp C
  intrusive_queue<job> cancelled;
  {
    const std::lock_guard lock(lock_);
    members_.for_each([&](rare_task_state& member) { cancel_wait(member.who, cancelled); });
  }
  runtime_.inject(cancelled, priority::woken);
}

// Each spawn by a bound fiber comes here (interrupts::at_spawn).
void join_strand(task& task, scheduler* here) {
  if (!here || !here->is_bound()) return;
  // The running fiber is bound, so it has rare state. It may be pinned and in no strand.
  const rare_task_state* const spawner = here->running()->rare_state_if_made();
  const rare_task_state* const own = task.rare_state_if_made();
  if (!spawner->member_of || (own && own->member_of)) return;
  try {
    spawner->member_of->add_member(task);
  } catch (...) {
    task.detach_at_birth();
    task.abandon();
    throw;
  }
}

// Called at the end of each fiber that has rare state, also of fibers that are in no strand. With the lock held, or
// there is no handle.
void task::leave_strand() noexcept {
  rare_task_state& rare = *rare_state_.load(std::memory_order_acquire);  // pairs with rare_state
  if (strand* const former = std::exchange(rare.member_of, nullptr)) former->remove_member(rare);
}

// Under the lock, because the holder of the handle may ask for a token at the same time, which follows the strand. The
// caller has made the rare state.
strand* task::change_strand(strand* to) noexcept {
  rare_task_state& mine = *rare_state_.load(std::memory_order_acquire);  // pairs with rare_state
  const std::lock_guard lock(lock_);
  return std::exchange(mine.member_of, to);
}

// Lock held.
void task::relay_stops(rare_task_state& mine, const std::stop_source& source) {
  mine.runtime_stop.emplace(runtime().fibers.stop_source().get_token(), rare_task_state::relay{source});
  if (mine.member_of) mine.strand_stop.emplace(mine.member_of->stop_token(), rare_task_state::relay{source});
}

// ---- whose turn it is ----

// The member runs later, or elsewhere. First the strand is taken for it, so that no other member can begin before it.
void strand::pass_to(task& member) noexcept {
  turn_.pass_to(member);
  perturb();
  scheduler& here = *this_scheduler();
  if (!here.forward_if_pinned_elsewhere(member)) here.add(member);
}

// The strand stays on this worker until no member waits. It moves on earlier after a number of turns, for maintenance,
// or if the next member is pinned to another worker. Each member returns here when it leaves its stack. The reference
// keeps the strand alive while its last member ends.
void strand::run(task& first) noexcept {
  if (!turn_.try_acquire(first)) return;
  retain();
  scheduler& here = *this_scheduler();  // which a bound fiber does not leave
  task* member = &first;
  for (unsigned turns = 1;; ++turns) {
    here.run_bound(*member);
    member = static_cast<task*>(turn_.release());
    if (!member) break;
    // Other fibers of this worker get a turn.
    if (turns == members_per_run || here.maintenance_due() || !here.may_run(*member)) {
      pass_to(*member);
      break;
    }
  }
  release();
}

// ---- which worker may run a bound fiber ----

// The job that represents a bound fiber in the queues. A fiber that was just pinned has no worker yet: it is this one.
void scheduler::dispatch_bound(job* dispatched) noexcept {
  task& member = *static_cast<task*>(dispatched);
  rare_task_state& rare = *member.rare_state_if_made();
  scheduler& here = *this_scheduler();
  if (here.forward_if_pinned_elsewhere(member)) return;
  // From now on this worker neither leaves as surplus nor hands itself off, as long as it has a pinned fiber.
  if (rare.pins > 0 && !rare.pinned_to) {
    rare.pinned_to = &here;
    here.queues.pin();
  }
  if (rare.member_of) {
    rare.member_of->run(member);
  } else {
    here.run_bound(member);
  }
}

// A fiber without a pin may run anywhere. A fiber that was pinned while it ran has no worker until its next dispatch.
bool scheduler::may_run(const task& member) const noexcept {
  const rare_task_state* const rare = member.rare_state_if_made();
  return !rare || !rare->pinned_to || rare->pinned_to == this;
}

// After true the fiber belongs to another worker, and may be running there already.
bool scheduler::forward_if_pinned_elsewhere(task& member) noexcept {
  if (may_run(member)) return false;
  member.rare_state_if_made()->pinned_to->give_pinned(member);
  return true;
}

// The worker sees it at its next maintenance, or looks for work once more before it sleeps.
void scheduler::give_pinned(task& member) noexcept {
  // In a queue of its own, because thieves take from all others.
  queues.push_pinned(member);
  perturb();
  ask(request::maintenance);
  runtime_.parker.wake(*this);
}

job* scheduler::take_pinned() noexcept {
  intrusive_queue<job> one;
  queues.take_pinned(1, one);
  return one.pop();
}

}  // namespace ulexite::detail
