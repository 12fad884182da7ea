// The switch from one fiber to the next, and the loop of a worker. Everything here runs on the worker itself. A
// computation leaves its stack with switch_out(). Its successor, on another stack, first completes the switch, because
// only then are the registers of the computation that left saved.

#include <ulexite/base/panic.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/task/closure_task.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/wait/stackless_wait.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/controlled_run.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <utility>

#include <unistd.h>

namespace ulexite::detail {

scheduler::scheduler(runtime_state& rt, std::size_t index)
    : runtime_(rt),
      index_(index),
      stacks_(rt.stacks),
      victims_(reinterpret_cast<std::uintptr_t>(this) + index, rt.threads.most()),
      queues(rt.threads.most() == 1),
      forks_(*this, rt.threads.most()) {}

// ---- switching ----

// `next` runs from now on, or a job if that is null. The mark comes before the read of the requests, so an inspection
// either sees the fiber running or is waited for. The count of dispatches is how thieves and the monitor see that this
// worker is not stuck.
void scheduler::begin_quantum(task* next) noexcept {
  set_running(next);
  current_.begin_budget(next);
#ifdef ULEXITE_DEBUG_MIGRATE
  if (next) next->last_worker = index_;
#endif
  std_atomics::compiler_fence();  // held_range.hpp A
  // One load for all requests of other threads.
  if (forks_.interrupts.at_dispatch()) [[unlikely]]
    answer_requests();
  counters().dispatches.add();
}

// Rare. The fiber is marked as running, so an inspection that comes to it now leaves it alone. An inspection that came
// before may use it at this moment, so the worker waits. Maintenance is only noted here, and done at the next switch.
[[gnu::noinline]] void scheduler::answer_requests() noexcept {
  if (asked(request::yield)) withdraw(request::yield);
  if (asked(request::end)) ask(request::yield);  // the monitor, which repeats it, ends with the runtime
  if (task* const next = running()) runtime_.world.held.wait_while_held(&next->agent());
  if (asked(request::halt) || asked(request::end)) note(request::maintenance);  // on the way to handle_safepoint
  if (asked(request::maintenance)) {
    withdraw(request::maintenance);
    note(request::maintenance);
  }
  // A deterministic run asks its controller after each operation.
  if (controlled_ && running()) current_.end_round_at_next_operation();
  if (asked(request::traced)) {
    note(request::traced);
    record_dispatch();
  }
}

// The fast operations of the library count down the agent's budget, and call this at 0. So a fiber that never has to
// wait yields after some rounds, or earlier if another thread asks.
bool scheduler::budget_is_spent() noexcept {
  if (controlled_) [[unlikely]]
    return controlled_->another_goes_first();
  const bool last = current_.next_round();
  const bool wanted = last || asked(request::yield);
  if (!wanted || running()->agent().held_locks == 0) return wanted;
  // Others would wait for its lock, or it is in a no_yield_scope. So it yields at its first operation without one.
  current_.end_round_at_next_operation();
  return false;
}

// Whether `next` can run from its beginning where another computation has just ended, on a stack of the size that
// `stack_bits` names (task.hpp). If it is a fiber, that starts it.
bool scheduler::start_in_place(job& next, std::uint8_t stack_bits) noexcept {
  // ThreadSanitizer takes all that runs on one stack for one thread of execution, and would miss races between fibers.
  if (ULEXITE_TSAN) return false;
  if (!fiber::is_fiber(next)) return stack_bits == 0;
  task& fresh = static_cast<task&>(next);
  return fresh.stack_bits() == stack_bits && fresh.state.start();
}

// A fiber that wants a stack of another size than the default gets it from the pool of that size, without a cache. The
// rare cases are out of line, so that no switch prepares for them.
[[gnu::always_inline]] inline stack* scheduler::take_stack(const job& first) noexcept {
  const std::uint8_t bits = fiber::is_fiber(first) ? static_cast<const task&>(first).stack_bits() : 0;
  stack* const cached = bits == 0 ? stacks_.take_cached() : nullptr;
  return cached ? cached : take_stack_slow(bits);
}
[[gnu::noinline, gnu::cold]] stack* scheduler::take_stack_slow(std::uint8_t bits) noexcept {
  return bits == 0 ? stacks_.take() : stack_pool::of_size(std::size_t{1} << bits).take();
}

// Leaves `from` for `next`, or for the main stack if that is null. The caller has put into switch_.action what the
// successor must do about `from`. Inlined into each caller, because the switch saves only the registers that the caller
// uses. There are three ways: resume a fiber on its own stack; start `next` on a stack from the cache; go to the main
// stack. A fiber that is neither resumable nor fresh is found by stack_main, where its start fails. Returns the thread
// on which `from` continues: on a main stack perhaps one that has left its worker. A fiber is always on a worker,
// perhaps another than before: it completes the switch of what ran there.
[[gnu::always_inline]] inline switch_thread* scheduler::switch_out(context& from, job* next,
                                                                   departure departure) noexcept {
  perturb();
  switch_thread* arrived = nullptr;
  if (next && fiber::is_fiber(*next) && static_cast<task*>(next)->state.resume()) {
    task& resumed = *static_cast<task*>(next);
    begin_quantum(&resumed);
    arrived = &switch_context(from, resumed.saved, *this, departure);
  } else if (stack* fresh = nullptr; next && (fresh = take_stack(*next))) {
    switch_.starting_job = next;
    switch_.starting_stack = fresh;
    arrived = &start_context(from, *fresh, stacks_.next_stack_offset(), stack_main, *this, departure);
  } else {
    if (next) {  // the system refuses memory for a stack: the fiber waits until another returns one
      counters().stacks_refused.add();
      if (is_bound()) next->run = dispatch_bound;
      runtime_.monitor.retry_later(*next);
      // On the main stack there is nothing to switch to: the loop chooses again.
      if (&from == switch_.main) return this;
    }
    set_running(nullptr);
    arrived = &switch_context(from, *switch_.main, *this, departure);
  }
  return arrived;
}

// For the main stack of a deterministic run. Out of line, because switch_out() is large and speed does not matter
// there.
[[gnu::noinline]] switch_thread* scheduler::switch_out_of_main(context& main, job& next) noexcept {
  return switch_out(main, &next, departure::returns);
}

// Runs the post-switch action of the computation that was just switched out. Only now may other threads see the fiber:
// it becomes resumable, and then visible by its wait, the ring, or the slot.
void scheduler::complete_switch() noexcept {
  perturb();
  post_switch& action = switch_.action;
  switch (std::exchange(action.what, post_switch::nothing)) {
    case post_switch::nothing: return;
    case post_switch::waiting: {
      // The order matters: a claimer that finds the wait committed may run the fiber immediately. So the fiber is made
      // resumable first. The lock is released last, because others may find the fiber's node under it.
      task& who = *action.who;
      who.state.saved();
      const bool waits = who.agent().word.commit(action.prepared, action.cancellable);
      // From here on the fiber may run, and end, elsewhere, unless its wait is over already.
      if (action.held) action.held->unlock();
      if (!waits) [[unlikely]]
        add(who);
      return;
    }
    case post_switch::yielding:
      action.who->state.saved();
      add(*action.who);
      return;
    case post_switch::yielding_to_woken:
      action.who->state.saved();
      wake(*action.who);
      return;
    case post_switch::ended:
      forget_context(*action.ended_stack);
      stacks_.recycle(*action.ended_stack);
      return;
    case post_switch::calling: return;  // seen by run only
  }
}

// A claimer that comes before the switch is complete waits for the queue's lock, or finds the wait not committed. So it
// cannot resume the fiber too early. The call may return on another worker: nothing of this one is used after the
// switch.
wake_reason scheduler::switch_to_next(spin_lock* held, bool prepared, wait_mode mode) noexcept {
  task& self = *running();
  self.set_wait(mode.object, mode.bits, pace_.coarse_time());
  switch_.action.waits(self, held, prepared, mode.is_cancellable());
  static_cast<scheduler*>(switch_out(self.saved, next_local(), departure::returns))->complete_switch();
  return self.agent().word.reason();
}

// Nothing of the coroutine is on the stack, so the wait is published here, without a switch: stack_main starts the next
// fiber in place. Once the fiber can run elsewhere, neither it nor its wait is used.
void scheduler::leave_stack(task& self, stackless_wait& wait) noexcept {
  const bool yields = wait.yields_;
  const wait_mode mode = wait.mode_now();
  if (traced()) [[unlikely]]
    record_left_stack(self, mode, yields);
  if (!yields) self.set_wait(mode.object, mode.bits, pace_.coarse_time());
  if (yields && controlled_) [[unlikely]]
    controlled_->on_yield(self.id);
  check_stack_canary(*self.current_stack);
  stack& left = *std::exchange(self.current_stack, nullptr);
  left.owner.store(nullptr, std::memory_order_release);  // pairs with the overflow handler's load
  if (const rare_task_state* const rare = self.rare_state_if_made(); rare && rare->is_bound()) [[unlikely]]
    self.run = dispatch_bound;
  set_running(nullptr);
  perturb();
  if (!wait.publish(self.state, self.agent().word)) add(self);
}

// A fiber that is alone continues without a switch, unless the pace requires maintenance. It still begins a new
// quantum, so that requests are seen.
void scheduler::yield() noexcept {
  if (running()->agent().kind == agent_kind::job) return;  // in a stop callback
  job* const next = next_local();
  if (!migrating && !next && !forks_.interrupts.at_switch() && !queues.has_slot() && !queues.has_pinned() &&
      !queues.maintenance_due()) {  // alone
    begin_quantum(running());
    return;
  }
  task& self = *running();
  switch_.action.yields(self);
  static_cast<scheduler*>(switch_out(self.saved, next, departure::returns))->complete_switch();
}

// The two fibers are likely to be at the ends of one channel. If one of them waited in the ring, a thief would take it
// there, and the two would run on different workers. So they change places through the slot.
void scheduler::yield_to_woken() noexcept {
  const bool woke_one = queues.has_slot();
  job* const next = woke_one ? next_local() : nullptr;
  if (!next) return yield();
  task& self = *running();
  switch_.action.yields(self, true);
  static_cast<scheduler*>(switch_out(self.saved, next, departure::returns))->complete_switch();
}

// The bottom of every stack except the threads' own: runs one fresh fiber or job after the other. So a fiber that never
// waits costs no switch and no stack of its own. The loop ends when the next to run is not fresh, wants another size of
// stack, or is none. A fiber that suspends keeps the stack, and the frame of this function with it. When it is resumed
// on another worker, the loop continues there: `here` is read again after each call.
void scheduler::stack_main(switch_thread& thread) {
  auto* here = static_cast<scheduler*>(&thread);
  stack& current_stack = *here->switch_.starting_stack;
  job* next = here->switch_.starting_job;
  if (here->traced()) [[unlikely]]
    here->record_left();
  here->complete_switch();
  std::uint8_t stack_bits = 0;
  if (fiber::is_fiber(*next)) {
    task& first = *static_cast<task*>(next);
    stack_bits = first.stack_bits();
    if (!first.state.start())
      panic("fiber #%llu was started while %s", static_cast<unsigned long long>(first.id),
            to_string(first.state.phase()));
  }
  for (;;) {
    if (fiber::is_fiber(*next)) {
      task& started = *static_cast<task*>(next);
      started.current_stack = &current_stack;
      current_stack.owner.store(&started, std::memory_order_release);  // pairs with the overflow handler's load
      name_context(current_stack, started);
      here->begin_quantum(&started);
      here = started.run_here();
    } else {
      here->begin_quantum(nullptr);
      here->switch_.starting_stack = &current_stack;
      next->run(next);
      here = this_scheduler();
      // The job may have become a fiber, and may have changed its worker since.
      if (task* const became = here->running()) here = became->run_here();
    }
    next = here->next_local();
    if (!next || !start_in_place(*next, stack_bits)) break;
    // No switch: the next fiber starts where the last one has ended.
    here->floating.restore();  // it must not inherit the rounding mode
    here->counters().starts_in_place.add();
  }
  here->set_running(nullptr);
  here->switch_.action.ends(current_stack);
  // The successor recycles this stack, so nothing here runs again.
  context unneeded;
  here->switch_out(unneeded, next, departure::final);
}

// The fiber's own function does nothing: it is called when the job has returned (stack_main), and ends the fiber.
void scheduler::make_fiber_of_job() {
  task& made = make_task(runtime_, [] {});
  made.detach_at_birth();
  initialise(made);
  static_cast<void>(made.state.start());  // fresh
  made.current_stack = switch_.starting_stack;
  made.current_stack->owner.store(&made, std::memory_order_release);  // pairs with the overflow handler's load
  begin_quantum(&made);
}

// The job's frame takes the place of the main stack. When the member leaves its stack, for any reason, the switch
// returns here. It is still this worker, because a bound fiber is not handed off. During this time next_local returns
// null, so no other fiber runs in between. Before the member is published, its `run` is set again, so that a queue
// gives it to dispatch_bound. If it has left the strand, it is an ordinary fiber.
void scheduler::run_bound(task& member) noexcept {
  context mine;
  context* const main = std::exchange(switch_.main, &mine);
  current_.execution().forks = nullptr;
  note(request::bound);
  member.run = nullptr;
  static_cast<void>(switch_out(mine, &member, departure::returns));
  note(request::bound, false);
  current_.execution().forks = &forks_;
  static_cast<void>(count_dispatch());
  switch_.main = main;
  if (switch_.action.what != post_switch::nothing && switch_.action.what != post_switch::ended) {
    task& left = *switch_.action.who;
    const rare_task_state* const rare = left.rare_state_if_made();
    left.run = rare && rare->is_bound() ? dispatch_bound : nullptr;  // before others may see it
  }
  complete_switch();
}

void scheduler::rebind() noexcept {
  // If the fiber is bound already, the main stack is its job's, and the switch goes there. Otherwise the switch
  // goes to the worker's loop. The loop then takes the fiber from a queue, as a bound fiber.
  task& self = *running();
  if (!is_bound()) self.run = dispatch_bound;
  switch_.action.yields(self);
  static_cast<scheduler*>(switch_out(self.saved, nullptr, departure::returns))->complete_switch();
}

// ---- what to run next: this worker's own ----

// The next of this worker's own queues. Null when the main stack must choose: the queues are empty, it is time for
// maintenance, the slot was taken too often, or a pinned fiber has its turn. Called by a fiber that is about to wait,
// with its queue's lock held, so it takes no lock and makes no system call; at most it reads the clock.
job* scheduler::next_local() noexcept {
  if (!count_dispatch()) return nullptr;
  // The slot comes first, because its fiber was woken last and its data is in the cache. But after some dispatches in a
  // row the fibers in the ring have a turn.
  if (queues.has_slot()) {
    if (queues.slot_streak_exceeded() && others_wait()) return nullptr;
    if (job* const woken = queues.next_from_slot()) return woken;
  }
  return queues.next_in_line();
}

// ---- the worker's thread ----

// The loop of a worker: choose, then leave the main stack for what was chosen. Fibers switch to each other directly. So
// a turn of this loop is maintenance, the start of work after a search, or the end of a sleep. The steps: next() takes
// own work, search() takes others', park() sleeps. Each may return null; then the loop begins again, because the sleep
// has made this worker a searcher, or the runtime ends.
task* scheduler::run() noexcept {
  context main;
  switch_.main = switch_.thread_main = &main;
  static_cast<switch_thread&>(*this) = switch_thread{};
  current_.move_to_this_thread();
  current_.execution() = {this, nullptr, &forks_};
  set_running(nullptr);
  activity.thread.set(::gettid());
  pace_.set_time(now_ns());
  if (traced()) record_left();  // on the previous thread of this worker
  bool stopping = false;
  while (!stopping) {
    // From cheap to expensive: own queues, other workers' queues, sleep.
    const bool surplus = runtime_.parker.is_surplus() && leaves_work();
    job* chosen = surplus ? nullptr : next();
    if (!chosen && !surplus) chosen = search();
    if (!chosen) chosen = park(stopping);
    // After park, so that a worker that was woken for a request answers it before it runs anything.
    if (forks_.interrupts.at_safepoint()) [[unlikely]]
      chosen = handle_safepoint(chosen, stopping);
    if (!chosen) continue;
    // A searcher that has found work wakes the next one, so that searchers follow the work.
    runtime_.parker.end_search(*this, eager());
    // During this call the worker may be given to another thread (begin_handoff). Then this thread returns as another
    // switch_thread, and must not touch the worker.
    switch_thread* here = switch_out(main, chosen, departure::returns);
    while (here == this && switch_.action.what == post_switch::calling) [[unlikely]]
      here = make_call(main);
    if (here != this) return fiber_of(*here);
    if (traced()) record_left();
    complete_switch();
  }
  activity.running.set(nullptr);
  current_.execution() = {};
  return nullptr;
}

}  // namespace ulexite::detail
