// Fibers that the monitor holds, under Relacy: no fiber runs while the monitor uses its stack, and the monitor uses
// none whose fiber runs.
//
// MUTANT: no_light_fence       the worker does not see that the fiber is held
// MUTANT: no_heavy_fence       the monitor does not see that the fiber runs
// MUTANT: release_is_relaxed   the worker does not see the end of the monitor's use, nor the monitor the saved context
// MUTANT: acquire_is_relaxed   the same on the other side
// MUTANT: no_second_look       the monitor takes a fiber that was suspended before the fence
// MUTANT: no_wait              the worker does not look who is held
// MUTANT: asked_late           the monitor asks the workers behind the fence
// MUTANT: withdrawn_early      the monitor withdraws its request before it is done

#include <ulexite/fiber/fiber_state.hpp>
#include <ulexite/runtime/worker/fiber_holds.hpp>

#include "relacy_atomics.hpp"

enum class mutation {
  none,
  no_light_fence,
  no_heavy_fence,
  release_is_relaxed,
  acquire_is_relaxed,
  no_second_look,
  no_wait,
  asked_late,
  withdrawn_early
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using orders = model::orders_of<mutant, model::by<mutation::no_light_fence, model::no_light_fence>,
                                model::by<mutation::no_heavy_fence, model::no_heavy_fence>,
                                model::by<mutation::release_is_relaxed, model::release_is_relaxed>,
                                model::by<mutation::acquire_is_relaxed, model::acquire_is_relaxed>>;
using atomics = model::relacy_atomics<orders>;

// A worker runs the fiber twice, and the monitor trims its stack twice. `frame` is what the fiber leaves in its record,
// `below` the memory below it.
struct run_and_trim : rl::test_suite<run_and_trim, 2> {
  ulexite::detail::basic_fiber_state<atomics> state;
  ulexite::detail::basic_fiber_holds<atomics, 1> holds;
  atomics::atomic<bool> asked{false};  // a worker's request::held
  rl::var<int> frame, below;

  void before() {
    frame($) = below($) = 0;
    RL_ASSERT(state.start());
    state.saved();
  }

  void thread(unsigned id) {
    for (int turn = 1; turn <= 2; ++turn) id == 0 ? run(turn) : trim();
  }

  // As scheduler::switch_out, begin_quantum and complete_switch.
  void run(int turn) {
    RL_ASSERT(state.resume());
    atomics::light_fence();
    if (asked.load(orders::acquire) && mutant != mutation::no_wait) holds.wait_while_held(this);
    below($) = turn;
    frame($) = turn;
    state.saved();
  }

  // As idle_stacks::trim.
  void trim() {
    const bool suspended = state.is_suspended();
    holds.hold(0, this);
    if (mutant != mutation::asked_late) asked.store(true, orders::release);
    atomics::heavy_fence();
    if (mutant == mutation::asked_late) asked.store(true, orders::release);
    if (mutant == mutation::withdrawn_early) asked.store(false, orders::release);
    if (mutant == mutation::no_second_look ? suspended : state.is_suspended()) below($) = -int(frame($));
    holds.let_go(0);
    asked.store(false, orders::release);
  }
};

int main() { return model::holds<run_and_trim>(300'000) ? 0 : 1; }
