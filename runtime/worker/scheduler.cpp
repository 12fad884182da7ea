#include <ulexite/base/panic.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/controlled_run.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <utility>

namespace ulexite::detail {

scheduler::scheduler(runtime_state& home, std::size_t index) noexcept
    : home_(home),
      index_(index),
      stacks_(home.stacks),
      thefts_(reinterpret_cast<std::uintptr_t>(this) + index),
      queues_(home.threads.most() == 1),
      forks_(*this, home.threads.most()) {}

// ---- switching ----

stack_pool& scheduler::pool_for(const job& runnable) const noexcept {
  if (!fiber::is_fiber(runnable)) return home_.stacks;
  const std::size_t wanted = static_cast<const task&>(runnable).wanted_stack();
  return wanted == 0 ? home_.stacks : stack_pool::of_size(wanted);
}

// The next fiber, or a job if `next` is null, runs from now on.
void scheduler::begin_quantum(task* next) noexcept {
  set_running(next);
  occupant_.begin_budget(next);
#ifdef ULEXITE_DEBUG_MIGRATE
  if (next) next->last_worker = index_;
#endif
  std_atomics::compiler_fence();  // inspection.hpp A
  if (forks_.asked()) [[unlikely]]
    answer_requests();
  counters().dispatches.add();
}

// What runs next is marked as running, so an inspection that begins now leaves it alone. It may read the fiber at this
// moment if it began before, and then it is waited for.
[[gnu::noinline]] void scheduler::answer_requests() noexcept {
  if (forks_.asked_for(request::yield)) forks_.withdraw(request::yield);
  if (forks_.asked_for(request::inspected)) {
    home_.world.inspecting.lock();
    home_.world.inspecting.unlock();
  }
  if (forks_.asked_for(request::visit)) {
    forks_.withdraw(request::visit);
    pace_.visit_soon();
    pace_.ask_visit();
  }
  if (controlled_ && running()) occupant_.end_round_at_next_operation();
  notice_.set_traced(forks_.asked_for(request::traced));
  if (traced()) record_dispatch();
}

bool scheduler::budget_is_spent() noexcept {
  if (controlled_) [[unlikely]]
    return controlled_->another_goes_first();
  const bool last = occupant_.next_round();
  if (running()->agent().held_locks != 0) return false;  // others would wait for its lock, or it is in a no_yield scope
  return last || forks_.yield_requested();
}

// The event loop has not been polled for a while either, so a visit is due; at that visit the forks are left to the
// fiber that made them.
void scheduler::yield_after_request() noexcept {
  pace_.visit_after_next();
  pace_.leave_forks();
  yield_to_woken();
}

// Can `next` run on a stack of `pool` from its beginning?
bool scheduler::starts_on(const job& next, const stack_pool& pool) const noexcept {
  // ThreadSanitizer takes all that runs on one stack for one thread of execution, and would miss races between fibers.
  if (ULEXITE_TSAN) return false;
  if (fiber::is_fiber(next) && static_cast<const task&>(next).state.phase() != fiber_phase::fresh) return false;
  return &pool_for(next) == &pool;
}

// The rare case is out of line, so that no switch prepares for it.
[[gnu::always_inline]] inline stack* scheduler::take_stack(stack_pool& pool) noexcept {
  stack* const kept = stacks_.take_kept(pool);
  return kept ? kept : take_stack_slow(pool);
}
[[gnu::noinline, gnu::cold]] stack* scheduler::take_stack_slow(stack_pool& pool) noexcept { return stacks_.take(pool); }

// Leaves `from` for `next`, or for the main stack if that is null. What the successor must do about the computation
// left behind is in switch_.left. Returns which thread it is that `from` goes on: a worker, but on a main stack perhaps
// one that has left its worker to another.
[[gnu::always_inline]] inline switch_thread* scheduler::leave(context& from, job* next, departure departure) noexcept {
  perturb();
  switch_thread* arrived = nullptr;
  if (next && fiber::is_fiber(*next) && static_cast<task*>(next)->state.phase() != fiber_phase::fresh) {
    task& resumed = *static_cast<task*>(next);
    if (!resumed.state.resume())
      panic("fiber #%llu was resumed while %s", static_cast<unsigned long long>(resumed.id),
            to_string(resumed.state.phase()));
    begin_quantum(&resumed);
    arrived = &switch_context(from, resumed.saved, *this, departure);
  } else if (stack* fresh = nullptr; next && (fresh = take_stack(pool_for(*next)))) {
    switch_.launching = next;
    switch_.launch_stack = fresh;
    arrived = &start_context(from, *fresh, stacks_.next_colour(), stack_main, *this, departure);
  } else {
    if (next) {  // the machine refuses memory for a stack: the fiber waits for one that another gives back
      counters().stacks_refused.add();
      if (leashed()) next->run = run_leashed;
      home_.monitor.retry_later(*next);
      if (&from == switch_.main) return this;
    }
    set_running(nullptr);
    arrived = &switch_context(from, *switch_.main, *this, departure);
  }
  return arrived;
}

// For the main stack of a deterministic run.
[[gnu::noinline]] switch_thread* scheduler::leave_main(context& main, job& next) noexcept {
  return leave(main, &next, departure::returns);
}

// A fiber always goes on on a worker.
[[gnu::always_inline]] inline void scheduler::arrive(switch_thread* thread) noexcept {
  static_cast<scheduler*>(thread)->complete_switch();
}

[[gnu::always_inline]] inline void scheduler::complete_wait(task& who, spin_lock* held) noexcept {
  who.state.saved();
  const bool waits = who.agent().word.commit(switch_.left.prepared, switch_.left.cancellable);
  // From here on the fiber may run, and end, elsewhere, unless its wait is over already.
  if (held) held->unlock();
  if (!waits) [[unlikely]]
    add(who);
}

// What could not be done on the stack that was left: only now may others see the fiber that stood on it.
void scheduler::complete_switch() noexcept {
  perturb();
  departed& left = switch_.left;
  switch (std::exchange(left.what, departed::nothing)) {
    case departed::nothing: return;
    case departed::waiting: return complete_wait(*left.who, left.held);
    case departed::yielding:
      left.who->state.saved();
      add(*left.who);
      return;
    case departed::yielding_to_woken:
      left.who->state.saved();
      wake(*left.who);
      return;
    case departed::ended:
      forget_context(*left.stood_on);
      stacks_.recycle(*left.stood_on, *left.pool);
      return;
    case departed::calling: return;  // seen by run only
  }
}

wake_reason scheduler::suspend(spin_lock* held, bool prepared, wait_mode mode) noexcept {
  task& self = *running();
  self.note_wait(mode.object, mode.bits, pace_.coarse_time());
  switch_.left.waits(self, held, prepared, mode.is_cancellable());
  arrive(leave(self.saved, next_local(), departure::returns));
  return self.agent().word.reason();
}

void scheduler::yield() noexcept {
  if (running()->agent().kind == agent_kind::job) return;  // in a stop callback
  job* const next = next_local();
  if (!migrating && !next && !pace_.visit_due() && !has_slot()) {  // alone
    begin_quantum(running());
    return;
  }
  task& self = *running();
  switch_.left.yields(self);
  arrive(leave(self.saved, next, departure::returns));
}

// The other one is likely to be at the far end of a channel. In the ring the two would be stolen from each other time
// and again, as one of them waits there.
void scheduler::yield_to_woken() noexcept {
  const bool woke_one = has_slot();
  job* const next = woke_one ? next_local() : nullptr;
  if (!next) return yield();
  task& self = *running();
  switch_.left.yields_to_woken(self);
  arrive(leave(self.saved, next, departure::returns));
}

// The bottom of every stack but the threads' own: runs one fresh fiber or job after the other, until the next to run is
// none. A fiber that suspends keeps the stack, and this function with it.
void scheduler::stack_main(switch_thread& thread) {
  auto* here = static_cast<scheduler*>(&thread);
  stack& standing = *here->switch_.launch_stack;
  job* next = here->switch_.launching;
  stack_pool& pool = here->pool_for(*next);
  here->complete_switch();
  for (;;) {
    if (fiber::is_fiber(*next)) {
      task& started = *static_cast<task*>(next);
      if (!started.state.start())
        panic("fiber #%llu was started while %s", static_cast<unsigned long long>(started.id),
              to_string(started.state.phase()));
      started.standing = &standing;
      standing.owner.store(&started, std::memory_order_release);  // pairs with the overflow handler's load
      name_context(standing, started);
      here->begin_quantum(&started);
      here = started.run_here();
    } else {
      here->begin_quantum(nullptr);
      here->switch_.launch_stack = &standing;
      next->run(next);
      here = this_scheduler();
      if (task* const became = here->running()) here = became->run_here();
    }
    here->floating.restore();  // what starts next on this stack has not the rounding mode of what has ended
    next = here->next_local();
    if (!next || !here->starts_on(*next, pool)) break;
    here->counters().starts_in_place.add();
  }
  here->set_running(nullptr);
  here->switch_.left.ends(standing, pool);
  context unneeded;
  here->leave(unneeded, next, departure::final);
}

// The fiber's own function does nothing: it is called when the job has returned (stack_main), and ends the fiber.
void scheduler::make_fiber_of_job() {
  task& made = make_task(home_, [] {});
  made.detach_at_birth();
  initialise(made);
  static_cast<void>(made.state.start());  // fresh
  made.standing = switch_.launch_stack;
  made.standing->owner.store(&made, std::memory_order_release);  // pairs with the overflow handler's load
  begin_quantum(&made);
}

// Whatever makes the member leave its stack, it comes back here, on this worker: a leash is not handed off.
void scheduler::run_on_leash(task& member) noexcept {
  context mine;
  context* const main = std::exchange(switch_.main, &mine);
  const unsigned dispatches_left = pace_.suspend_count();
  occupant_.execution().forks = nullptr;
  switch_.leashed = true;
  forget_ids();
  member.run = nullptr;
  static_cast<void>(leave(mine, &member, departure::returns));
  switch_.leashed = false;
  occupant_.execution().forks = &forks_;
  pace_.resume_count(dispatches_left);
  switch_.main = main;
  if (switch_.left.what != departed::nothing && switch_.left.what != departed::ended) {
    task& left = *switch_.left.who;
    const rare_task_state* const rare = left.rare_state_if_made();
    left.run = rare && rare->leashed() ? run_leashed : nullptr;  // before others may see it
  }
  complete_switch();
}

void scheduler::renew_leash() noexcept {
  task& self = *running();
  if (!leashed()) self.run = run_leashed;
  switch_.left.yields(self);
  arrive(leave(self.saved, nullptr, departure::returns));
}

// ---- what to run next: this worker's own ----

// The next of this worker's own queues, or null when the main stack must see to it: nothing is left here, or something
// is due that takes locks or time. Called with a wait's lock held, so it must stay short.
job* scheduler::next_local() noexcept {
  if (!pace_.count_dispatch()) return nullptr;
  if (has_slot()) {
    if (queues_.slot_had_its_share() && may_have_work()) return nullptr;
    if (job* const woken = queues_.next_from_slot()) return woken;
  }
  return queues_.next_in_line();
}

// ---- the worker's thread ----

task* scheduler::run() noexcept {
  context main;
  switch_.main = switch_.thread_main = &main;
  static_cast<switch_thread&>(*this) = switch_thread{};
  occupant_.move_to_this_thread();
  occupant_.execution() = {this, &occupant_.job_agent(), &forks_};
  activity_.set_busy(true);
  pace_.note_time(now_ns());
  bool stopping = false;
  while (!stopping) {
    job* chosen = next();
    if (!chosen) chosen = search();
    if (!chosen) chosen = park(stopping);
    if (home_.attention.any()) [[unlikely]]
      chosen = attend(chosen, stopping);
    if (!chosen) continue;
    home_.parker.end_search(*this, eager());
    switch_thread* here = leave(main, chosen, departure::returns);
    while (here == this && switch_.left.what == departed::calling) [[unlikely]]
      here = make_call(main);
    if (here != this) return fiber_of(*here);
    if (traced()) record_left();
    complete_switch();
  }
  activity_.set_busy(false);
  occupant_.execution() = {};
  return nullptr;
}

}  // namespace ulexite::detail
