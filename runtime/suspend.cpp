#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/runtime/core.hpp>
#include <ulexite/runtime/suspend.hpp>
#include <ulexite/runtime/waiting_event.hpp>

#include <chrono>

namespace ulexite::detail {
namespace {

// The running fiber of the calling worker, or null on a plain thread. A job is neither: it may not wait.
task* running_fiber() noexcept {
  scheduler* const here = scheduler::current();
  if (!here) return nullptr;
  task* const fiber = here->running();
  if (!fiber) panic("a job waits for something: only fibers and plain threads may");
  return fiber;
}

wake_reason suspend_thread(thread_agent& self, spin_lock* held, bool prepared, std::int64_t deadline) noexcept {
  const bool waits = self.word.commit(prepared, false);
  if (held) held->unlock();
  if (waits && !self.block(deadline) && self.word.claim(wake_reason::timed_out) == claim_result::lost)
    while (!self.block(no_deadline)) {
    }  // claimed in time: the resume is on its way
  return self.word.reason();
}

wake_reason suspend_fiber(task& self, spin_lock* held, bool prepared, bool cancellable,
                          std::int64_t deadline) noexcept {
  wait_word& word = self.agent().word;
  if (deadline == no_deadline) {
    scheduler::current()->suspend(held, prepared, cancellable);
    return word.reason();
  }
  // The timer may fire before the switch: then its claim is early, and the commit after the switch notices.
  if (!prepared) word.prepare();
  timer_event timer;
  tie<wake_reason::timed_out>(timer, self.agent());
  event_loop& loop = *self.home->loop;
  loop.arm(timer, deadline, scheduler::current()->index());
  scheduler::current()->suspend(held, true, cancellable);
  loop.cancel(timer);
  return word.reason();
}

wake_reason suspend_any(spin_lock* held, bool prepared, bool cancellable, std::int64_t deadline) noexcept {
  if (task* const fiber = running_fiber()) return suspend_fiber(*fiber, held, prepared, cancellable, deadline);
  return suspend_thread(static_cast<thread_agent&>(this_agent()), held, prepared, deadline);
}

}  // namespace

bool thread_agent::block(std::int64_t deadline) noexcept {
  std::unique_lock lock(mutex_);
  const auto signalled = [this] { return resumed_ || poked_; };
  if (deadline == no_deadline) {
    condition_.wait(lock, signalled);
  } else {
    const auto until = clock::time_point(std::chrono::nanoseconds(deadline));
    if (!condition_.wait_until(lock, until, signalled)) return false;
  }
  poked_ = false;
  return std::exchange(resumed_, false);
}

agent& this_agent() noexcept {
  if (task* const fiber = running_fiber()) return fiber->agent();
  thread_local thread_agent plain;  // a plain thread stays on itself: no fiber comes here
  return plain;
}

void resume(agent& agent) noexcept {
  if (agent.is_thread) {
    static_cast<thread_agent&>(agent).resume();
    return;
  }
  task& fiber = agent.fiber();
  scheduler* const here = scheduler::current();
  if (here && &here->home() == fiber.home) {
    here->wake(fiber);
  } else {
    fiber.home->inject(fiber);
  }
}

wake_reason suspend(spin_lock& held, cancellable cancellable, std::int64_t deadline) noexcept {
  return suspend_any(&held, false, cancellable == cancellable::yes, deadline);
}

wake_reason suspend_prepared(cancellable cancellable, std::int64_t deadline) noexcept {
  return suspend_any(nullptr, true, cancellable == cancellable::yes, deadline);
}

bool stop_requested() noexcept {
  scheduler* const here = scheduler::current();
  if (!here || !here->running()) return false;
  task& fiber = *here->running();
  return fiber.agent().word.stop_requested() || fiber.home->stop_requested();
}

void throw_if_stopped() {
  if (stop_requested()) throw operation_cancelled();
}

void spend_budget() noexcept {
  scheduler* const here = scheduler::current();
  if (here && here->running() && here->spend()) here->yield();
}

core& this_core() {
  scheduler* const here = scheduler::current();
  if (!here) throw std::system_error(make_error_code(errc::no_runtime), "ulexite::spawn");
  return here->home();
}

}  // namespace ulexite::detail
