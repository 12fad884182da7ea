// The worker of a deterministic run: it finds the candidates, and the controller picks one of them. Time is virtual. It
// passes only when nothing can run, or when the controller lets a timer overtake the fibers.

#include <ulexite/base/kernel.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/base/perturb.hpp>
#include <ulexite/evloop/event_loop.hpp>
#include <ulexite/fiber/switch.hpp>
#include <ulexite/runtime/worker/controlled_run.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>

#include <algorithm>
#include <utility>

namespace ulexite::detail {

// All contents of the worker's queues. Only its own pushes, because no thief steals from it.
void controlled_run::gather() noexcept {
  // The worker's own queues, then the shared queue, then the queue of pinned fibers.
  worker_.queues.drain([this](job& next, priority) { runnable_.push_back(&next); });
  intrusive_queue<job> outside;
  worker_.runtime_.injected.take(SIZE_MAX, outside);
  worker_.queues.take_pinned(SIZE_MAX, outside);
  while (job* const next = outside.pop()) runnable_.push_back(next);
}

// The next timer, or the next event of the simulated network.
std::int64_t controlled_run::next_event() const noexcept {
  const std::int64_t timer = worker_.runtime_.loop->next_deadline();
  return controller_.network ? std::min(timer, controller_.network->next_arrival()) : timer;
}

// Moves the time to the next event. The timers of that time fire, data of the simulated network arrives, and the fibers
// that wait for these become runnable. False: there is no event, or the controller ends the run.
bool controlled_run::let_time_pass() noexcept {
  // The controller has set its clock to that event.
  if (!controller_.idle(next_event())) return false;
  worker_.pace_.set_time(controller_.now);
  event_list ready;
  worker_.runtime_.loop->fire_timers(ready);
  while (event* const fired = ready.pop()) runnable_.push_back(&task_of(*fired));
  if (controller_.network) controller_.network->arrive(controller_.now);
  gather();
  return true;
}

// The index of the candidate that continues. The running fiber is the first candidate if it could continue; then come
// the runnable ones, and last the passing of time. If the controller picks the passing of time, it is asked again
// afterwards.
std::size_t controlled_run::ask(controller::moment moment) noexcept {
  for (;;) {
    candidates_.clear();
    if (moment == controller::moment::operation) candidates_.push_back(worker_.running()->id);
    for (const job* const each : runnable_)
      candidates_.push_back(fiber::is_fiber(*each) ? static_cast<const task*>(each)->id : 0);
    // The simulated machine may be so slow that the event comes before the runnable fibers.
    if (next_event() <= controller_.overtake_until) candidates_.push_back(controller::passing_time);
    const std::size_t picked = controller_.pick(candidates_, moment);
    if (controller_.over || candidates_[picked] != controller::passing_time) return picked;
    let_time_pass();
  }
}

// The others keep their order, because strategies depend on it.
job* controlled_run::take(std::size_t which) noexcept {
  const auto at = runnable_.begin() + static_cast<std::ptrdiff_t>(which);
  job* const taken = *at;
  runnable_.erase(at);
  return taken;
}

// The main stack's choice. If the controller has picked another fiber at an operation, the running one has yielded for
// it, and it comes first. Branches that were offered become fibers here, so the controller may start them in any order.
job* controlled_run::next() noexcept {
  worker_.note(request::maintenance, false);
  if (job* const picked = std::exchange(picked_, nullptr)) return picked;
  gather();
  while (job* const forked = worker_.forks_.start_next(true)) runnable_.push_back(forked);
  // No fiber can run: only the passing of time may help.
  while (runnable_.empty())
    if (!let_time_pass()) return nullptr;
  const std::size_t which = ask(controller::moment::left);
  return controller_.over ? nullptr : take(which);
}

// Called at each operation of the running fiber. If the controller picks another, this fiber must yield, and next()
// returns the picked one.
bool controlled_run::another_goes_first() noexcept {
  worker_.current_.end_round_at_next_operation();  // the next operation asks too
  if (job* const passed_over = std::exchange(picked_, nullptr)) runnable_.push_back(passed_over);
  gather();
  if (controller_.over) return true;
  const std::size_t which = ask(controller::moment::operation);
  if (which == 0) return controller_.over;
  picked_ = take(which - 1);
  worker_.note(request::maintenance);  // otherwise a strand would run its next member first
  return true;
}

// As run(), without search and sleep: one thread, and the controller's choice. The calling thread keeps its own record
// of what it executes, which is restored at the end.
void scheduler::run_controlled(controller& by) noexcept {
  controlled_run run(*this, by);
  controlled_ = &run;
  context main;
  switch_.main = switch_.thread_main = &main;
  static_cast<switch_thread&>(*this) = switch_thread{};
  current_.move_to_this_thread();
  const current_execution outside = std::exchange(current_.execution(), {this, &current_.job_agent(), &forks_});
  const bool perturbed_outside = set_perturbed(false);  // there is no other thread to interleave with
  ask(request::controlled);
  note(request::controlled);
  pace_.set_time(by.now);
  while (job* const next = by.over ? nullptr : run.next()) {
    switch_thread* here = switch_out_of_main(main, *next);
    // A fiber may ask for several calls on this stack (on_thread_stack) before it leaves.
    while (here == this && switch_.action.what == post_switch::calling) here = make_call(main);
    // The strategy must know of a yield before it is asked again: otherwise it could pick the yielding fiber for ever.
    if (switch_.action.what == post_switch::yielding) run.on_yield(switch_.action.who->id);
    complete_switch();
    if (runtime_.monitor.any_starved()) panic("no memory for the stack of a fiber in a deterministic run");
  }
  withdraw(request::controlled);
  note(request::controlled, false);
  set_perturbed(perturbed_outside);
  activity.running.set(nullptr);
  current_.execution() = outside;
  controlled_ = nullptr;
}

}  // namespace ulexite::detail
