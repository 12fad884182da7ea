// The fiber keeps its thread, and the worker moves to another one: at once in block_in_place, and after a while in a
// brief call that lasts. The thread is a plain one until the call ends. docs/scheduler.md (Blocking) describes the
// steps. Here are also the calls that a fiber makes on its thread's own stack.

#include <ulexite/base/perturb.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/runtime/worker/worker_handoff.hpp>
#include <ulexite/runtime/worker_parts/brief_call.hpp>

namespace ulexite::detail {
namespace {

// The worker of the calling fiber, if it may go to another thread. A plain thread and a job have none: there the call
// blocks the thread. A worker with a bound fiber, or with pinned fibers, must keep its thread. A deterministic run
// has only one.
scheduler* worker_to_give() noexcept {
  scheduler* const here = this_scheduler();
  const bool may = here && this_agent().kind == agent_kind::fiber && here->may_hand_off() && !here->is_controlled();
  return may ? here : nullptr;
}

}  // namespace

worker_handoff::worker_handoff() noexcept {
  scheduler* const here = worker_to_give();
  if (!here) return;
  if (here->begin_handoff(thread_.emplace(here->this_thread()))) {
    static_cast<thread_agent&>(this_agent()).handed_off_fiber = thread_->who;
  } else {
    thread_.reset();
  }
}

worker_handoff::~worker_handoff() {
  if (!thread_) return;
  static_cast<thread_agent&>(this_agent()).handed_off_fiber = nullptr;
  scheduler::end_handoff(*thread_);
}

// If the worker is gone, this thread learns of it only at the end: the call does not ask whose thread it is.
call_length brief_call(void (*call)(const void*), const void* data) noexcept {
  scheduler* const here = worker_to_give();
  if (!here || !here->runtime().brief_calls.may_begin()) return call_length::not_made;
  own_thread own = here->this_thread();
  own.counted_by = &here->runtime().brief_calls;
  here->offer_handoff(own);
  perturb();
  call(data);
  perturb();
  const bool still_here = here->withdraw_offer(own);
  if (!still_here) scheduler::end_handoff(own);
  return still_here ? call_length::brief : call_length::lasting;
}

own_thread scheduler::this_thread() noexcept { return {*this, running(), switch_.main}; }

// All of this worker is left as between two fibers before the other thread may touch it; nothing is touched after.
bool scheduler::begin_handoff(own_thread& own) noexcept {
  current_execution& thread = current_.execution();
  set_running(nullptr);
  thread = {};
  perturb();
  // From here on another thread may run this worker, and the fiber must not use it.
  handoff_work_.offer.make(own);
  if (runtime_.blocking->lend_thread(handoff_work_) || !withdraw_offer(own)) return true;
  thread.scheduler = this;
  thread.forks = &forks_;
  set_running(own.who);
  return false;
}

// A thread that comes too late finds no offer, or that of a later call, which it accepts as well.
void scheduler::relieve_call() noexcept {
  if (handoff_work_.offer.stands()) static_cast<void>(runtime_.blocking->lend_thread(handoff_work_));
}

// On the lent thread: its life as the worker, unless the offer was withdrawn. It ends with the runtime, or when this
// thread hands the worker off in its turn. Then be_worker returns the fiber of that second call, which finish() makes
// runnable.
void* scheduler::handoff_work::run() noexcept {
  runtime_state& rt = worker.runtime_;
  task* handed_off_fiber = nullptr;
  if (offer.accept()) {
    if (worker.running()) rt.brief_calls.lasts();  // in block_in_place there is none
    worker.activity.running.set(&worker.current_.job_agent());
    handed_off_fiber = rt.threads.be_worker(worker.index_);
  }
  rt.blocking->thread_returns();
  return handed_off_fiber;
}

// The thread is free for the next such call before the fiber can make one. Any thread may have the worker by now.
void scheduler::handoff_work::finish(void* handed_off_fiber) noexcept {
  if (handed_off_fiber) worker.runtime_.inject(*static_cast<task*>(handed_off_fiber), priority::woken);
}

// To the main stack of the thread, which has the fiber made runnable. It continues here, on some worker.
void scheduler::end_handoff(own_thread& own) noexcept {
  perturb();
  static_cast<scheduler&>(switch_context(own.who->saved, *own.main, own)).complete_switch();
}

// The thread has left the fiber for its own main stack (end_handoff). The fiber is made resumable only now, because no
// thread uses its stack. After that its frame, with the record, may be gone.
task* scheduler::fiber_of(switch_thread& on_leave) noexcept {
  const own_thread own = static_cast<own_thread&>(on_leave);
  this_thread_execution() = {};
  own.who->state.saved();
  if (own.counted_by) own.counted_by->ended();
  return own.who;
}

// ---- the thread's own stack ----

// The fiber leaves its stack, but stays the running one: it is not made resumable, so no other worker can have it. The
// switch goes to thread_main, because `main` may be the frame of the job that runs the bound fiber.
void scheduler::call_on_thread_stack(void (*function)(void*), void* data) noexcept {
  thread_call wanted{function, data};
  switch_.action.calls(wanted);
  static_cast<scheduler&>(switch_context(running()->saved, *switch_.thread_main, *this)).complete_switch();
}

// On the thread's own stack, in run(): makes the call, during which the fiber counts as running, and switches back to
// it. Returns when the fiber leaves its stack the next time.
switch_thread* scheduler::make_call(context& main) noexcept {
  switch_.action.what = post_switch::nothing;
  const thread_call wanted = *switch_.action.call;
  set_call_for(running()->current_stack);
  wanted.function(wanted.data);
  set_call_for(nullptr);
  return &switch_context(main, running()->saved, *this);
}

}  // namespace ulexite::detail
