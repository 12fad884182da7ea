// Fibers that an inspection holds, under Relacy: no fiber runs while the inspection uses its record or stack, and the
// inspection uses none whose fiber runs.
//
// MUTANT: no_light_fence       the worker sees neither the request nor the range
// MUTANT: no_heavy_fence       the inspection does not see that the fiber runs
// MUTANT: release_is_relaxed   the worker does not see the end of the use, nor the inspection the saved context
// MUTANT: acquire_is_relaxed   the same on the other side
// MUTANT: no_second_look       the inspection uses a fiber that was suspended before the fence
// MUTANT: no_wait              the worker does not look who is held
// MUTANT: held_late            the range is set behind the fence
// MUTANT: asked_late           the request is made behind the fence
// MUTANT: withdrawn_early      the request is withdrawn before the use

#include <ulexite/fiber/fiber_state.hpp>
#include <ulexite/runtime/worker_parts/held_range.hpp>

#include "relacy_atomics.hpp"

enum class mutation {
  none,
  no_light_fence,
  no_heavy_fence,
  release_is_relaxed,
  acquire_is_relaxed,
  no_second_look,
  no_wait,
  held_late,
  asked_late,
  withdrawn_early
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using orders = model::orders_of<mutant, model::by<mutation::no_light_fence, model::no_light_fence>,
                                model::by<mutation::no_heavy_fence, model::no_heavy_fence>,
                                model::by<mutation::release_is_relaxed, model::release_is_relaxed>,
                                model::by<mutation::acquire_is_relaxed, model::acquire_is_relaxed>>;
using atomics = model::relacy_atomics<orders>;

// A worker runs two fibers, each twice, and an inspection holds one after the other, then both. `record` is what a
// fiber leaves, `below` the memory below it.
struct run_and_inspect : rl::test_suite<run_and_inspect, 2> {
  struct fiber {
    ulexite::detail::basic_fiber_state<atomics> state;
    rl::var<int> record, below;
  } fibers[2];
  ulexite::detail::basic_held_range<atomics> held;
  atomics::atomic<bool> asked{false};  // the worker's request::inspected

  void before() {
    for (fiber& each : fibers) {
      each.record($) = each.below($) = 0;
      RL_ASSERT(each.state.start());
      each.state.saved();
    }
  }

  void thread(unsigned id) {
    if (id != 0) return inspect();
    for (int turn = 1; turn <= 2; ++turn)
      for (fiber& each : fibers) run(each, turn);
  }

  // As scheduler::switch_out, begin_quantum, answer_requests and complete_switch.
  void run(fiber& next, int turn) {
    RL_ASSERT(next.state.resume());
    atomics::light_fence();
    if (asked.load(orders::acquire) && mutant != mutation::no_wait) held.wait_while_held(&next);
    next.below($) = turn;
    next.record($) = turn;
    next.state.saved();
  }

  // As inspection, idle_stacks::trim and collect_fibers.
  void inspect() {
    if (mutant != mutation::asked_late) asked.store(true, orders::release);
    use(0, 1);
    use(1, 1);
    use(0, 2);
    held.hold(nullptr, 0);
    asked.store(false, orders::release);
  }
  void use(int first, int count) {
    bool suspended[2];
    for (int i = 0; i < 2; ++i) suspended[i] = fibers[i].state.is_suspended();
    if (mutant != mutation::held_late) held.hold(fibers + first, sizeof(fiber) * static_cast<unsigned>(count));
    atomics::heavy_fence();
    if (mutant == mutation::held_late) held.hold(fibers + first, sizeof(fiber) * static_cast<unsigned>(count));
    if (mutant == mutation::asked_late) asked.store(true, orders::release);
    if (mutant == mutation::withdrawn_early) asked.store(false, orders::release);
    for (int i = first; i < first + count; ++i)
      if (mutant == mutation::no_second_look ? suspended[i] : fibers[i].state.is_suspended())
        fibers[i].below($) = -int(fibers[i].record($));
  }
};

int main() { return model::holds<run_and_inspect>(300'000) ? 0 : 1; }
