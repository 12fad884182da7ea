// The flag around the switch under Relacy. A thread that resumes a fiber sees its saved context. No fiber is resumed
// twice. A coroutine is started again where a fiber is resumed; its context is the place at which it waits.
//
// MUTANT: a_not_released     saved does not publish the context
// MUTANT: a_not_acquired     resume does not see it
// MUTANT: saved_too_early    the fiber is called resumable before its context is saved
// MUTANT: started_too_early  the same for a coroutine that waits

#include <ulexite/fiber/fiber_state.hpp>

#include "relacy_atomics.hpp"

enum class mutation { none, a_not_released, a_not_acquired, saved_too_early, started_too_early };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>>;

using ulexite::detail::fiber_phase;

// A fiber, or a coroutine, which leaves its stack.
template <bool Coroutine>
struct fiber {
  ulexite::detail::basic_fiber_state<atomics> state;
  rl::var<int> context;
  int runs = 0;

  // The fiber's next run, by the thread that has just made it `running`; it ends at a switch.
  void run() {
    constexpr bool early = mutant == (Coroutine ? mutation::started_too_early : mutation::saved_too_early);
    ++runs;
    if (early) leave();
    context($) = runs;
    if (!early) leave();
  }
  void leave() {
    if (Coroutine)
      state.unstacked();
    else
      state.saved();
  }
  bool resume() { return Coroutine ? state.start() : state.resume(); }
  void see_context() { RL_ASSERT(int(context($)) == runs); }
};

// The one reference that may be resumed goes from queue to thread to queue, as in the scheduler. A resume must succeed;
// the last one ends the fiber, and then there is no other.
template <bool Coroutine>
struct passed_from_thread_to_thread : rl::test_suite<passed_from_thread_to_thread<Coroutine>, 3> {
  static constexpr int runs = 4;

  fiber<Coroutine> passed;
  model::relacy_atomic<bool, model::orders, false> queued{false};

  void thread(unsigned id) {
    if (id == 0) {
      RL_ASSERT(!passed.state.resume());
      RL_ASSERT(passed.state.start());
      RL_ASSERT(!passed.state.start());
      passed.run();
      queued.store(true, rl::mo_release);
    }
    for (int turn = 0; turn < 3; ++turn) {
      if (!queued.exchange(false, rl::mo_acq_rel)) continue;
      if (passed.runs == runs) {
        RL_ASSERT(passed.state.phase() == fiber_phase::dead);
        RL_ASSERT(!passed.state.resume() && !passed.state.start());
      } else {
        RL_ASSERT(passed.resume());
        RL_ASSERT(passed.state.phase() == fiber_phase::running && !passed.state.resume() && !passed.state.start());
        passed.see_context();
        if (passed.runs + 1 < runs) {
          passed.run();
        } else {
          ++passed.runs;
          passed.state.finish();
        }
      }
      queued.store(true, rl::mo_release);
    }
  }
};

// A thread that got its reference without any order, perhaps too early: it cannot resume the fiber, or it sees the
// context.
template <bool Coroutine>
struct told_so_or_sees_the_context : rl::test_suite<told_so_or_sees_the_context<Coroutine>, 2> {
  fiber<Coroutine> passed;

  void before() { RL_ASSERT(passed.state.start()); }
  void thread(unsigned id) {
    if (id == 0) {
      passed.run();
    } else if (passed.resume()) {
      passed.see_context();
      RL_ASSERT(!passed.resume());
      passed.state.finish();
    }
  }
};

int main() {
  return model::holds<passed_from_thread_to_thread<false>>(500'000) &&
                 model::holds<passed_from_thread_to_thread<true>>(500'000) &&
                 model::holds<told_so_or_sees_the_context<false>>(100'000) &&
                 model::holds<told_so_or_sees_the_context<true>>(100'000)
             ? 0
             : 1;
}
