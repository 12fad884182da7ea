#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/task/waiting_event.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <string>

namespace ulexite::detail {
namespace {

std::string words_of_refusal(agent& self, wait_kind kind) {
  const rare_task_state* const rare = self.fiber().rare_state_if_made();
  const std::source_location& where = rare->waits_forbidden_at;
  return "fiber #" + std::to_string(self.fiber().id) + " waits " + to_string(kind) + " under the no_suspend of " +
         where.file_name() + ":" + std::to_string(where.line());
}

// Always prepared, because the thread itself is a claimer without the lock: after its deadline, and when it is poked.
// Only a thread of an isolated_context is ever asked to stop.
wake_reason suspend_thread(thread_agent& self, spin_lock* held, bool prepared, bool cancellable,
                           std::int64_t deadline) noexcept {
  if (!prepared) self.word.prepare();
  const bool waits = self.word.commit(true, cancellable);
  if (held) held->unlock();
  if (waits && !self.block(deadline) && self.word.claim(wake_reason::timed_out) == claim_result::lost)
    while (!self.block(no_deadline)) {
    }  // claimed in time: the resume is on its way
  return self.word.reason();
}

// The waiter ends its own wait before it has begun, as cancelled, so that the caller unlinks what it has linked.
[[gnu::cold, gnu::noinline]] wake_reason refuse_wait(agent& self, spin_lock* held, bool prepared,
                                                     wait_mode mode) noexcept {
  if (!self.waits_forbidden)
    panic(
        "a job or a stop callback waits for something: only fibers and plain threads may (a job can become_fiber() "
        "first)");
  if (!mode.is_cancellable()) panic("%s", words_of_refusal(self, wait_mode::kind_of(mode.bits)).c_str());
  self.fiber().rare_state_if_made()->refused = wait_mode::kind_of(mode.bits);
  if (!prepared) self.word.prepare();
  static_cast<void>(self.word.claim(wake_reason::cancelled));
  static_cast<void>(self.word.commit(true, true));  // claimed already, by this or another
  if (held) held->unlock();
  return self.word.reason();
}

// The timer may fire before the switch: then its claim is early, and the commit after the switch notices.
[[gnu::noinline]] wake_reason suspend_with_timer(task& self, spin_lock* held, bool prepared, wait_mode mode,
                                                 std::int64_t deadline) noexcept {
  if (!prepared) self.agent().word.prepare();
  timer_event timer;
  tie<wake_reason::timed_out>(timer, self.agent());
  event_loop& loop = *self.home().loop;
  loop.arm(timer, deadline, this_scheduler()->index());
  const wake_reason reason = this_scheduler()->suspend(held, true, mode.with_timer());
  loop.cancel(timer);
  return reason;
}

wake_reason suspend_any(agent& self, spin_lock* held, bool prepared, wait_mode mode, std::int64_t deadline) noexcept {
  if (self.kind != agent_kind::fiber) [[unlikely]] {
    if (self.kind == agent_kind::job) return refuse_wait(self, held, prepared, mode);
    return suspend_thread(static_cast<thread_agent&>(self), held, prepared, mode.is_cancellable(), deadline);
  }
  if (deadline != no_deadline) return suspend_with_timer(self.fiber(), held, prepared, mode, deadline);
  return this_scheduler()->suspend(held, prepared, mode);
}

// The agent's own deadline bounds what may be cancelled, and is told from that of the operation.
wake_reason suspend_bounded(agent& self, spin_lock* held, bool prepared, wait_mode mode,
                            std::int64_t deadline) noexcept {
  const wait_mode heard = mode.cancellable_if(!self.shielded);
  if (!mode.is_cancellable() || self.deadline >= deadline) [[likely]]
    return suspend_any(self, held, prepared, heard, deadline);
  const wake_reason reason = suspend_any(self, held, prepared, heard, self.deadline);
  if (reason != wake_reason::timed_out) return reason;
  self.expired = true;
  return wake_reason::cancelled;
}

// Out of line, as is the first suspend below, so that those who call them for what is rare need no frame.
[[gnu::noinline]] void resume_elsewhere(agent& agent) noexcept {
  if (agent.kind == agent_kind::thread) {
    static_cast<thread_agent&>(agent).resume();
  } else {
    runtime_state::resume_from_outside(agent.fiber());
  }
}

}  // namespace

void resume(agent& agent) noexcept { resume(agent, this_scheduler()); }

void resume(agent& agent, scheduler* worker) noexcept {
  if (worker && agent.kind != agent_kind::thread && &worker->home() == &agent.fiber().home()) [[likely]] {
    worker->wake(agent.fiber());
  } else {
    resume_elsewhere(agent);
  }
}

void run_stop_callbacks(std::stop_source source) noexcept {
  agent& self = this_agent();
  const agent_kind kind = self.kind;
  const bool nested = self.calls_back;
  if (kind == agent_kind::fiber) self.kind = agent_kind::job;
  self.calls_back = true;
  source.request_stop();
  self.calls_back = nested;
  self.kind = kind;
}

[[gnu::noinline]] wake_reason suspend(agent& self, spin_lock& held, wait_mode mode, std::int64_t deadline) noexcept {
  return suspend_bounded(self, &held, false, mode, deadline);
}

wake_reason suspend(caller self, spin_lock& held, wait_mode mode, std::int64_t deadline) noexcept {
  agent& agent = *self.agent;
  if (agent.kind == agent_kind::fiber && deadline == no_deadline && agent.deadline == no_deadline) [[likely]]
    return self.worker->suspend(&held, false, mode.cancellable_if(!agent.shielded));
  return suspend(agent, held, mode, deadline);
}

wake_reason suspend_prepared(agent& self, wait_mode mode, std::int64_t deadline) noexcept {
  return suspend_bounded(self, nullptr, true, mode, deadline);
}

std::error_code stop_cause(const agent& self) noexcept {
  if (self.word.stop_requested() && !self.shielded) return errc::cancelled;
  if (self.expired) return errc::deadline_exceeded;
  return {};
}

void throw_stop_cause(const agent& self) {
  if (const std::error_code cause = stop_cause(self)) throw_cancelled(cause);
}

void throw_cancelled(std::error_code cause) {
  if (agent& self = this_agent(); !cause && self.waits_forbidden)
    check_may_wait(self, self.fiber().rare_state_if_made()->refused);
  if (cause == errc::deadline_exceeded) throw deadline_exceeded();
  throw operation_cancelled();
}

void throw_wait_forbidden(agent& self, wait_kind kind) { throw usage_error(words_of_refusal(self, kind)); }

void throw_cancelled() { throw_cancelled(stop_cause(this_agent())); }

// What runs under no_suspend is one step: it may hold a lock of the thread's.
void yield_point::pass() noexcept {
  if (!this_controller() || !this_scheduler()) return;
  agent& self = this_agent();
  if (!self.waits_forbidden) yield_if_budget_spent(self);
}

void yield_if_budget_spent(agent& self) noexcept {
  if (self.kind == agent_kind::fiber && this_scheduler()->budget_is_spent()) this_scheduler()->yield_to_woken();
}

bool runs_on_a_worker(const agent* who) noexcept {
  scheduler* const here = this_scheduler();
  if (!here) return false;
  for (const auto& worker : here->home().schedulers)
    if (worker->activity().running() == who) return true;
  return false;
}

task* this_task() noexcept {
  scheduler* const here = this_scheduler();
  return here ? here->running() : nullptr;
}

runtime_state& this_runtime_state() {
  scheduler* const here = inlined_execution().scheduler;
  if (!here) [[unlikely]] {
    if (runtime_state* const home = spawn_home_of_thread()) return *home;
    throw std::system_error(make_error_code(errc::no_runtime), "ulexite::spawn");
  }
  return here->home();
}

}  // namespace ulexite::detail
