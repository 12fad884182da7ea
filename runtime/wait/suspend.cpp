// How an agent waits and is resumed. The caller of a suspend function passes the lock of the queue that the agent is
// in; without one it has prepared the agent's word. The function returns the reason, when the wait was claimed. The
// layers, from the outside:
//   suspend_and_unlock, suspend_prepared   called by the primitives; the common case goes straight to the worker.
//   suspend_bounded    adds the agent's own deadline, and a shield; distinguishes fibers, plain threads and jobs.
//   suspend_with_timer, suspend_thread, scheduler::switch_to_next   do it.

#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/shield.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/wait/blocked_thread.hpp>
#include <ulexite/runtime/wait/stackless_wait.hpp>
#include <ulexite/runtime/wait/stop_callbacks.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <optional>
#include <string>

namespace ulexite::detail {
namespace {

// For the exception or the report: which fiber waits for what, and where that was forbidden.
std::string describe_refusal(agent& self, wait_kind kind) {
  const rare_task_state* const rare = self.fiber().rare_state_if_made();
  const char* const what = kind == wait_kind::select ? "in a select" : to_string(kind);  // no object follows
  const std::string wait = "fiber #" + std::to_string(self.fiber().id) + " waits " + what + " under ";
  if (rare && rare->waits_forbidden_by) return wait + rare->waits_forbidden_by;
  const std::source_location where = rare ? rare->waits_forbidden_at : std::source_location();
  if (where.line() == 0) return wait + "a hook, on_thread_stack or a stopped_world";
  return wait + "the no_suspend_scope of " + where.file_name() + ":" + std::to_string(where.line());
}

// A plain thread blocks on its own condition variable. After its deadline it claims its wait itself. Only a thread of
// an isolated_context is ever asked to stop.
wake_reason suspend_thread(thread_agent& self, spin_lock* held, wait_mode mode, std::int64_t deadline) noexcept {
  const bool waits = self.word.commit(!held, mode.is_cancellable());
  if (held) held->unlock();
  if (!waits) return self.word.reason();
  std::optional<blocked_thread> listed;
  if (self.is_listed) listed.emplace(deadline == no_deadline ? mode : mode.with_timer());
  if (!self.block(deadline) && self.word.claim(wake_reason::timed_out) == claim_result::lost)
    self.block(no_deadline);  // claimed in time: the resume is on its way
  return self.word.reason();
}

// A wait where none is allowed: in a job, in a stop callback, or under a no_suspend_scope. The waiter ends its own wait
// before it has begun, as cancelled, so that the caller unlinks its node and throws. A wait that cannot be cancelled,
// and one of a job, would never end: then the process ends.
[[gnu::cold, gnu::noinline]] wake_reason refuse_wait(agent& self, spin_lock* held, wait_mode mode) noexcept {
  if (!self.waits_forbidden)
    panic(
        "a job or a stop callback waits for something: only fibers and plain threads may (a job can become_fiber() "
        "first)");
  if (!mode.is_cancellable()) panic("%s", describe_refusal(self, wait_mode::kind_of(mode.bits)).c_str());
  self.fiber().rare_state().refused = wait_mode::kind_of(mode.bits);
  if (held) self.word.prepare();
  static_cast<void>(self.word.claim(wake_reason::cancelled));
  static_cast<void>(self.word.commit(true, true));  // claimed already, by this or another
  if (held) held->unlock();
  return self.word.reason();
}

// The timer may fire before the switch: then its claim is early, and the commit after the switch notices. The timer is
// on this frame, so it is cancelled before the return, perhaps on another worker.
[[gnu::noinline]] wake_reason suspend_with_timer(task& self, spin_lock* held, wait_mode mode,
                                                 std::int64_t deadline) noexcept {
  if (held) self.agent().word.prepare();
  timer_event timer;
  bind_event<wake_reason::timed_out>(timer, self.agent());
  event_loop& loop = *self.runtime().loop;
  loop.arm(timer, deadline, this_scheduler()->index());
  const wake_reason reason = this_scheduler()->switch_to_next(held, true, mode.with_timer());
  // Waits for a claim by the timer that is under way, so the timer may be destroyed.
  loop.cancel(timer);
  return reason;
}

// The agent's own deadline ends only waits that may be cancelled, and then as a cancellation. The operation's own limit
// is a result, but the deadline is a reason to stop. So the nearer of the two is armed, and `expired` notes that it was
// the deadline. A job has no stack of its own that could stay, so its wait is refused. A fiber with a deadline needs a
// timer, and all others go straight to their worker.
wake_reason suspend_bounded(agent& self, spin_lock* held, wait_mode mode, std::int64_t deadline) noexcept {
  if (self.kind == agent_kind::job) [[unlikely]]
    return refuse_wait(self, held, mode);
  const bool own = mode.is_cancellable() && self.deadline < deadline;
  const std::int64_t until = own ? self.deadline : deadline;
  const wait_mode heard = mode.cancellable_if(!self.shielded);
  const wake_reason reason = self.kind == agent_kind::thread
                                 ? suspend_thread(static_cast<thread_agent&>(self), held, heard, until)
                             : until != no_deadline ? suspend_with_timer(self.fiber(), held, heard, until)
                                                    : this_scheduler()->switch_to_next(held, !held, heard);
  if (!own || reason != wake_reason::timed_out) return reason;
  self.expired = true;
  return wake_reason::cancelled;
}

// Out of line, as is the first suspend_and_unlock below, so that their callers need no frame on the fast path.
[[gnu::noinline]] void resume_elsewhere(agent& agent) noexcept {
  if (agent.kind == agent_kind::thread) {
    static_cast<thread_agent&>(agent).resume();
  } else {
    runtime_state::resume_from_outside(agent.fiber());
  }
}

}  // namespace

void resume(agent& agent) noexcept { resume(agent, this_scheduler()); }

// A fiber of this worker's runtime runs next here. A fiber of another runtime goes into that one's shared queue, and a
// plain thread is woken. `worker` saves the callers that know it a look-up.
void resume(agent& agent, scheduler* worker) noexcept {
  if (worker && agent.kind != agent_kind::thread && &worker->runtime() == &agent.fiber().runtime()) [[likely]] {
    worker->wake(agent.fiber());
  } else {
    resume_elsewhere(agent);
  }
}

void resume_holder(agent& agent, scheduler* worker) noexcept {
  if (worker && agent.kind != agent_kind::thread && &worker->runtime() == &agent.fiber().runtime()) {
    worker->wake_holder(agent.fiber());
  } else {
    resume_elsewhere(agent);
  }
}

// A dump sees the end of the wait before the link of the queue, which is in the place of the wait's object
// (inspection.cpp).
void cancel_wait(agent& agent, intrusive_queue<job>& cancelled) noexcept {
  if (!agent.word.cancel()) return;
  std::atomic_thread_fence(std::memory_order_release);  // with the acquire fences of copy_record
  cancelled.push(agent.fiber());
}

// The callbacks run on the calling agent, which must not wait in them: so it counts as a job. It may have been asked to
// stop itself, but they must not throw. They may request another stop, so the earlier state is restored.
bool run_stop_callbacks(std::stop_source source) noexcept {
  agent& self = this_agent();
  const agent_kind kind = self.kind;
  const bool nested = self.calls_back;
  if (kind == agent_kind::fiber) self.kind = agent_kind::job;
  self.calls_back = true;
  const shield in_callbacks;
  const bool first = source.request_stop();
  self.calls_back = nested;
  self.kind = kind;
  return first;
}

[[gnu::noinline]] wake_reason suspend_and_unlock(agent& self, spin_lock& held, wait_mode mode,
                                                 std::int64_t deadline) noexcept {
  return suspend_bounded(self, &held, mode, deadline);
}

// The fast path: a fiber that waits without any time limit. It knows its worker already, so nothing is looked up.
wake_reason suspend_and_unlock(caller self, spin_lock& held, wait_mode mode, std::int64_t deadline) noexcept {
  agent& agent = *self.agent;
  if (agent.kind == agent_kind::fiber && deadline == no_deadline && agent.deadline == no_deadline) [[likely]]
    return self.worker->switch_to_next(&held, false, mode.cancellable_if(!agent.shielded));
  return suspend_and_unlock(agent, held, mode, deadline);
}

// For an agent that has prepared its word, for example a select. No lock is held.
wake_reason suspend_prepared(agent& self, wait_mode mode, std::int64_t deadline) noexcept {
  return suspend_bounded(self, nullptr, mode, deadline);
}

// ---- the wait of a coroutine, by the rules of suspend_bounded ----

struct stackless_wait::timer : timer_event {
  bool is_agents = false;  // armed for the agent's deadline
};

void stackless_wait::drop_timer() noexcept { delete timer_; }

void stackless_wait::provide_timer() {
  if (!timer_) timer_ = new timer();
}

void stackless_wait::arm(agent& self, std::int64_t deadline) noexcept {
  timer_->is_agents = is_cancellable() && self.deadline < deadline;
  if (!std::exchange(prepared_, true)) self.word.prepare();
  bind_event<wake_reason::timed_out>(*timer_, self);
  self.fiber().runtime().loop->arm(*timer_, timer_->is_agents ? self.deadline : deadline, this_scheduler()->index());
}

// The cancel waits for a claim by the timer that is under way.
wake_reason stackless_wait::end_timed(agent& self) noexcept {
  self.fiber().runtime().loop->cancel(*timer_);
  const wake_reason reason = self.word.reason();
  if (reason != wake_reason::timed_out || !timer_->is_agents) return reason;
  self.expired = true;
  return wake_reason::cancelled;
}

bool stackless_wait::goes_on(agent& self) noexcept {
  if (--self.budget != 0) [[likely]]
    return true;
  self.budget = 1;  // for a fiber in a callback
  yields_ = self.kind == agent_kind::fiber && this_scheduler()->budget_is_spent();
  return !yields_;
}

void stackless_wait::keep_exception(agent& self) noexcept { self.fiber().failure = std::current_exception(); }
void stackless_wait::rethrow_kept() { std::rethrow_exception(std::exchange(this_task()->failure, nullptr)); }

void leave_stack(task& self, stackless_wait& wait) noexcept { this_scheduler()->leave_stack(self, wait); }

// A shield hides a stop. A deadline that has ended a wait stays the cause as long as that deadline holds.
std::error_code stop_cause(const agent& self) noexcept {
  if (self.word.stop_requested() && !self.shielded) return errc::cancelled;
  if (self.expired) return errc::deadline_exceeded;
  return {};
}

void throw_stop_cause(const agent& self) {
  const std::error_code cause = stop_cause(self);
  if (!cause) return;
  spend_budget();  // a loop that swallows the exception must let others run
  throw_cancelled(cause);
}

// Without a cause the wait was refused under a no_suspend_scope: then that is reported.
void throw_cancelled(std::error_code cause) {
  if (agent& self = this_agent(); !cause && self.waits_forbidden)
    check_may_wait(self, self.fiber().rare_state_if_made()->refused);
  if (cause == errc::deadline_exceeded) throw deadline_exceeded();
  throw operation_cancelled();
}

void throw_wait_forbidden(agent& self, wait_kind kind) { throw usage_error(describe_refusal(self, kind)); }

void throw_cancelled() { throw_cancelled(stop_cause(this_agent())); }

// In a deterministic run every operation ends here, and the controller may let another fiber go first. Code under
// no_suspend_scope is one step, because it may hold a lock of the thread's.
void yield_point::pass() noexcept {
  if (!this_controller() || !this_scheduler()) return;
  agent& self = this_agent();
  if (!self.waits_forbidden) yield_if_budget_spent(self);
}

// Only a fiber can yield; a job and a plain thread have no budget that counts.
void yield_if_budget_spent(agent& self) noexcept {
  if (self.kind != agent_kind::fiber) {
    self.budget = 1;  // a fiber in a callback goes on counting when that has returned
  } else if (this_scheduler()->budget_is_spent()) {
    this_scheduler()->yield_to_woken();
  }
}

// For the holder of a mutex: whether it pays to spin for it. A hint.
bool runs_on_a_worker(const agent* who) noexcept {
  scheduler* const here = this_scheduler();
  if (!here) return false;
  // The marks of the workers are read without a lock. A wrong answer costs some time, and nothing else.
  for (const auto& worker : here->runtime().schedulers)
    if (worker->activity.running.get() == who) return true;
  return false;
}

// Null on a plain thread and in a job.
task* this_task() noexcept {
  scheduler* const here = this_scheduler();
  return here ? here->running() : nullptr;
}

// For spawns: the runtime of the calling worker, or the one that a plain thread was given.
runtime_state& this_runtime_state() {
  scheduler* const here = inlined_execution().scheduler;
  if (!here) [[unlikely]] {
    if (runtime_state* const rt = spawn_runtime_of_thread()) return *rt;
    throw std::system_error(make_error_code(errc::no_runtime),
                            "ulexite: a spawn, or another call that needs a runtime");
  }
  return here->runtime();
}

}  // namespace ulexite::detail
