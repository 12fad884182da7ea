#include <ulexite/base/panic.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/fiber/valgrind.hpp>
#include <ulexite/runtime/task/rare_task_state.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/worker/controlled_run.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <utility>

#include <unistd.h>

namespace ulexite::detail {
scheduler::scheduler(runtime_state& home, std::size_t index) noexcept
    : home_(home),
      index_(index),
      // Memcheck forbids what lies below the last frame on a stack, until something is pushed there.
      stack_colour_step_(under_valgrind() ? 0 : 1),
      random_(reinterpret_cast<std::uintptr_t>(this) + index),
      forks_(*this, home.workers) {
  job_agent_.kind = agent_kind::job;
}

std::uint64_t scheduler::take_ids(std::uint64_t count) noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);  // counter
}

// ---- switching ----

stack_pool& scheduler::pool_for(const job& runnable) const noexcept {
  if (!fiber::is_fiber(runnable)) return home_.stacks;
  const std::size_t wanted = static_cast<const task&>(runnable).wanted_stack();
  return wanted == 0 ? home_.stacks : stack_pool::of_size(wanted);
}

stack* scheduler::take_stack(stack_pool& pool) noexcept {
  if (&pool != &home_.stacks) return pool.take();
  if (!stacks_) {
    stacks_ = pool.take(stacks_wanted_);
    if (!stacks_) return nullptr;
    stacks_wanted_ = std::min(2 * stacks_wanted_, tuning::most_stacks_taken);
    stack_count_ = 0;
    for (stack* s = stacks_; s; s = s->next) ++stack_count_;
  }
  stack* const taken = stacks_;
  stacks_ = taken->next;
  --stack_count_;
  return taken;
}

void scheduler::recycle(stack& left, stack_pool& pool) noexcept {
  forget_context(left);
  if (&pool != &home_.stacks || left.canary) {
    left.next = nullptr;
    pool.give(&left);
    return;
  }
  left.next = stacks_;
  stacks_ = &left;
  if (++stack_count_ <= tuning::stacks_kept) return;
  stacks_wanted_ = tuning::stacks_kept / 2;
  stack* last_kept = stacks_;
  for (unsigned i = 1; i < tuning::stacks_kept / 2; ++i) last_kept = last_kept->next;
  stack* const surplus = std::exchange(last_kept->next, nullptr);
  stack_count_ = tuning::stacks_kept / 2;
  pool.give(surplus);
}

void scheduler::set_running(task* next) noexcept {
  current_ = next;
  agent& now = next ? next->agent() : job_agent_;
  execution_->agent = &now;
  running_.store(&now, std::memory_order_relaxed);  // hint
}

void scheduler::begin_quantum(task* next) noexcept {
  set_running(next);
  if (next) next->agent().budget = tuning::operations_per_round;
#ifdef ULEXITE_DEBUG_MIGRATE
  if (next) next->last_worker = index_;
#endif
  budget_rounds_ = 0;
  std_atomics::compiler_fence();  // inspection.hpp A
  if (forks_.asked()) [[unlikely]]
    answer_requests();
  counters.dispatches.add();
}

// What runs next is marked as running, so an inspection that begins now leaves it alone. It may read the fiber at this
// moment if it began before, and then it is waited for.
[[gnu::noinline]] void scheduler::answer_requests() noexcept {
  if (forks_.asked_for(request::yield)) forks_.withdraw(request::yield);
  if (forks_.asked_for(request::inspected)) {
    home_.inspecting.lock();
    home_.inspecting.unlock();
  }
  if (forks_.asked_for(request::visit)) {
    forks_.withdraw(request::visit);
    until_housekeeping_ = 0;
    visit_asked_ = true;
  }
  if (controlled_ && current_) current_->agent().budget = 1;
  set_traced(forks_.asked_for(request::traced));
  if (traced()) {
    forget_ids();
    record_dispatch();
  }
}

bool scheduler::budget_is_spent() noexcept {
  if (controlled_) [[unlikely]]
    return controlled_->another_goes_first();
  current_->agent().budget = tuning::operations_per_round;
  ++budget_rounds_;
  if (current_->agent().held_locks != 0) return false;  // others would wait for its lock, or it is in a no_yield scope
  return budget_rounds_ >= tuning::rounds_per_quantum || forks_.yield_requested();
}

// The event loop has not been polled for a while either, so a visit is due; at that visit the forks are left to the
// fiber that made them.
void scheduler::yield_after_request() noexcept {
  until_housekeeping_ = std::min(until_housekeeping_, 1u);
  leave_forks_ = true;
  yield_to_woken();
}

// Can `next` run on a stack of `pool` from its beginning?
bool scheduler::starts_on(const job& next, const stack_pool& pool) const noexcept {
  // ThreadSanitizer takes all that runs on one stack for one thread of execution, and would miss races between fibers.
  if (ULEXITE_TSAN) return false;
  if (fiber::is_fiber(next) && static_cast<const task&>(next).state.phase() != fiber_phase::fresh) return false;
  return &pool_for(next) == &pool;
}

// Leaves `from` for `next`, or for the main stack if that is null. What the successor must do about the computation
// left behind is in departed_. Returns which thread it is that `from` goes on: a worker, but on a main stack perhaps
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
    launching_ = next;
    launch_stack_ = fresh;
    arrived = &start_context(from, *fresh, stack_colour_ += stack_colour_step_, stack_main, *this, departure);
  } else {
    if (next) {  // the machine refuses memory for a stack: the fiber waits for one that another gives back
      counters.stacks_refused.add();
      if (leashed_) next->run = run_leashed;
      home_.starved.push(*next);
      if (&from == main_) return this;
    }
    set_running(nullptr);
    arrived = &switch_context(from, *main_, *this, departure);
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
  const bool waits = who.agent().word.commit(departed_.prepared, departed_.cancellable);
  // From here on the fiber may run, and end, elsewhere, unless its wait is over already.
  if (held) held->unlock();
  if (!waits) [[unlikely]]
    add(who);
}

// What could not be done on the stack that was left: only now may others see the fiber that stood on it.
void scheduler::complete_switch() noexcept {
  perturb();
  switch (std::exchange(departed_.what, departed::nothing)) {
    case departed::nothing: return;
    case departed::waiting: return complete_wait(*departed_.who, departed_.held);
    case departed::yielding:
      departed_.who->state.saved();
      add(*departed_.who);
      return;
    case departed::yielding_to_woken:
      departed_.who->state.saved();
      wake(*departed_.who);
      return;
    case departed::ended: return recycle(*departed_.stood_on, *departed_.pool);
    case departed::calling: return;  // seen by run only
  }
}

wake_reason scheduler::suspend(spin_lock* held, bool prepared, wait_mode mode) noexcept {
  task& self = *current_;
  self.note_wait(mode.object, mode.bits, coarse_time_);
  departed_.what = departed::waiting;
  departed_.who = &self;
  departed_.held = held;
  departed_.prepared = prepared;
  departed_.cancellable = mode.is_cancellable();
  arrive(leave(self.saved, next_local(), departure::returns));
  return self.agent().word.reason();
}

void scheduler::yield() noexcept {
  if (current_->agent().kind == agent_kind::job) return;  // in a stop callback
  job* const next = next_local();
  if (!migrating && !next && until_housekeeping_ != 0 && !has_slot()) {  // alone
    begin_quantum(current_);
    return;
  }
  task& self = *current_;
  departed_.what = departed::yielding;
  departed_.who = &self;
  arrive(leave(self.saved, next, departure::returns));
}

// The other one is likely to be at the far end of a channel. In the ring the two would be stolen from each other time
// and again, as one of them waits there.
void scheduler::yield_to_woken() noexcept {
  const bool woke_one = has_slot();
  job* const next = woke_one ? next_local() : nullptr;
  if (!next) return yield();
  task& self = *current_;
  departed_.what = departed::yielding_to_woken;
  departed_.who = &self;
  arrive(leave(self.saved, next, departure::returns));
}

// The bottom of every stack but the threads' own: runs one fresh fiber or job after the other, until the next to run is
// none. A fiber that suspends keeps the stack, and this function with it.
void scheduler::stack_main(switch_thread& thread) {
  auto* here = static_cast<scheduler*>(&thread);
  stack& standing = *here->launch_stack_;
  job* next = here->launching_;
  stack_pool& pool = here->pool_for(*next);
  if (here->traced()) [[unlikely]]
    here->record_left();
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
      here->launch_stack_ = &standing;
      next->run(next);
      here = this_scheduler();
      if (task* const became = here->running()) here = became->run_here();
    }
    here->floating.restore();  // what starts next on this stack has not the rounding mode of what has ended
    next = here->next_local();
    if (!next || !here->starts_on(*next, pool)) break;
    here->counters.starts_in_place.add();
  }
  here->set_running(nullptr);
  here->departed_.what = departed::ended;
  here->departed_.stood_on = &standing;
  here->departed_.pool = &pool;
  context unneeded;
  here->leave(unneeded, next, departure::final);
}

// The fiber's own function does nothing: it is called when the job has returned (stack_main), and ends the fiber.
void scheduler::make_fiber_of_job() {
  task& made = make_task(home_, [] {});
  made.detach_at_birth();
  initialise(made);
  static_cast<void>(made.state.start());  // fresh
  made.standing = launch_stack_;
  made.standing->owner.store(&made, std::memory_order_release);  // pairs with the overflow handler's load
  begin_quantum(&made);
}

// Whatever makes the member leave its stack, it comes back here, on this worker: a leash is not handed off.
void scheduler::run_on_leash(task& member) noexcept {
  context mine;
  context* const main = std::exchange(main_, &mine);
  const unsigned dispatches_left = std::exchange(until_housekeeping_, 0);
  execution_->forks = nullptr;
  leashed_ = true;
  forget_ids();
  member.run = nullptr;
  static_cast<void>(leave(mine, &member, departure::returns));
  leashed_ = false;
  execution_->forks = &forks_;
  until_housekeeping_ = dispatches_left == 0 || visit_asked_ ? 0 : dispatches_left - 1;
  main_ = main;
  if (departed_.what != departed::nothing && departed_.what != departed::ended) {
    task& left = *departed_.who;
    const rare_task_state* const rare = left.rare_state_if_made();
    left.run = rare && rare->leashed() ? run_leashed : nullptr;  // before others may see it
  }
  complete_switch();
}

void scheduler::renew_leash() noexcept {
  task& self = *current_;
  if (!leashed_) self.run = run_leashed;
  departed_.what = departed::yielding;
  departed_.who = &self;
  arrive(leave(self.saved, nullptr, departure::returns));
}

// ---- what to run next: this worker's own ----

// With a thousand fibers taking turns, what a dispatch costs is the way of their memory to the first cache. So the
// block of the fiber after the next is fetched ahead, and the top of the stack of the next, whose block is here by now.
// The ring holds fibers only, and their blocks are never unmapped, so a stale hint does no harm.
[[gnu::always_inline]] inline void scheduler::prefetch_ring() noexcept {
#if !ULEXITE_TSAN && !ULEXITE_ASAN  // which take the look at a stale hint for an error
  __builtin_prefetch(ring_.hint(2));
  if (const auto* const next = static_cast<const task*>(ring_.hint(1))) {
    const auto* const frame = static_cast<const char*>(next->saved.frame);
    __builtin_prefetch(frame);
    __builtin_prefetch(frame + cache_line);
  }
#endif
}

[[gnu::always_inline]] inline job* scheduler::pop_ring() noexcept {
  if (ring_.has_more_than(2)) prefetch_ring();
  return alone() ? ring_.pop_top_alone() : ring_.pop_top();
}

// The next of this worker's own queues, or null when the main stack must see to it: nothing is left here, or something
// is due that takes locks or time. Called with a wait's lock held, so it must stay short.
job* scheduler::next_local() noexcept {
  if (until_housekeeping_ == 0) return nullptr;
  --until_housekeeping_;
  if (has_slot()) {
    if (slot_streak_ >= tuning::slot_streak_limit && may_have_work()) return nullptr;
    if (job* const woken = slot_.take()) {
      ++slot_streak_;
      return woken;
    }
  }
  slot_streak_ = 0;
  return sides_empty_ ? pop_ring() : next_by_turns();
}

// Fibers that were woken have three turns of four: they hold a stack, and what they wait for has come. In the others
// fibers and jobs take turns. So no kind starves another.
[[gnu::noinline]] job* scheduler::next_by_turns() noexcept {
  if (++woken_turn_ % 4 != 0)
    if (job* const woken = pop_woken()) return woken;
  jobs_turn_ = !jobs_turn_;
  job* mine = jobs_turn_ ? pop_jobs() : nullptr;
  if (!mine && !(mine = pop_ring()) && !(mine = pop_jobs())) mine = pop_woken();
  sides_empty_ = woken_.seems_empty() && jobs_.seems_empty();  // the owner's own look: only it adds to them
  return mine;
}

job* scheduler::pop_woken() noexcept { return alone() ? woken_.pop_top_alone() : woken_.pop_top(); }

job* scheduler::pop_jobs() noexcept { return alone() ? jobs_.pop_top_alone() : jobs_.pop_top(); }

// ---- the worker's thread ----

task* scheduler::run() noexcept {
  context main;
  main_ = thread_main_ = &main;
  static_cast<switch_thread&>(*this) = switch_thread{};
  execution_ = &this_thread_execution();
  *execution_ = {this, &job_agent_, &forks_};
  thread_number.store(::gettid(), std::memory_order_relaxed);  // hint
  busy_.store(true, std::memory_order_relaxed);                // hint
  note_time(now_ns());
  bool stopping = false;
  while (!stopping) {
    job* chosen = next();
    if (!chosen) chosen = search();
    if (!chosen) chosen = park(stopping);
    if (home_.wants_attention()) [[unlikely]]
      chosen = attend(chosen, stopping);
    if (!chosen) continue;
    home_.parker.end_search(*this, eager());
    switch_thread* here = leave(main, chosen, departure::returns);
    while (here == this && departed_.what == departed::calling) [[unlikely]]
      here = make_call(main);
    if (here != this) return fiber_of(*here);
    if (traced()) record_left();
    complete_switch();
  }
  busy_.store(false, std::memory_order_relaxed);  // hint
  *execution_ = {};
  return nullptr;
}

// Not at the end of run: a worker that was left to a thread which came too late to its end never runs again.
void scheduler::give_stacks_back() noexcept {
  home_.stacks.give(std::exchange(stacks_, nullptr));
  stack_count_ = 0;
}

}  // namespace ulexite::detail
