// Inspections in a row, under Relacy: no fiber runs while an inspection reads it, and a worker waits for one inspection
// only.
//
// MUTANT: no_light_fence       the worker sees neither the request nor the epoch
// MUTANT: no_heavy_fence       the inspection does not see that the fiber runs
// MUTANT: release_is_relaxed   the worker does not see the end of the reads, nor the inspection the saved context
// MUTANT: acquire_is_relaxed   the same on the other side
// MUTANT: no_wait              the worker does not wait for the end
// MUTANT: begun_late           the epoch begins behind the fence
// MUTANT: asked_late           the request is made behind the fence
// MUTANT: withdrawn_early      the request is withdrawn before the reads

#include <ulexite/fiber/fiber_state.hpp>
#include <ulexite/runtime/worker/inspection_epoch.hpp>

#include "relacy_atomics.hpp"

enum class mutation {
  none,
  no_light_fence,
  no_heavy_fence,
  release_is_relaxed,
  acquire_is_relaxed,
  no_wait,
  begun_late,
  asked_late,
  withdrawn_early
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using orders = model::orders_of<mutant, model::by<mutation::no_light_fence, model::no_light_fence>,
                                model::by<mutation::no_heavy_fence, model::no_heavy_fence>,
                                model::by<mutation::release_is_relaxed, model::release_is_relaxed>,
                                model::by<mutation::acquire_is_relaxed, model::acquire_is_relaxed>>;
using atomics = model::relacy_atomics<orders>;

// A worker runs the fiber twice, and a thread reads its record in two inspections.
struct run_and_read : rl::test_suite<run_and_read, 2> {
  ulexite::detail::basic_fiber_state<atomics> state;
  ulexite::detail::basic_inspection_epoch<atomics> epoch;
  atomics::atomic<bool> asked{false};  // the worker's request::inspected
  rl::var<int> record;

  void before() {
    record($) = 0;
    RL_ASSERT(state.start());
    state.saved();
  }

  void thread(unsigned id) {
    for (int round = 1; round <= 2; ++round) id == 0 ? run(round) : inspect();
  }

  // As scheduler::switch_out, begin_quantum, answer_requests and complete_switch.
  void run(int round) {
    RL_ASSERT(state.resume());
    atomics::light_fence();
    if (asked.load(orders::acquire) && mutant != mutation::no_wait)
      epoch.wait_for_end([](const auto&, unsigned) { atomics::pause(0); });
    record($) = round;
    state.saved();
  }

  // As inspection. Its mutex is left out, because one thread makes both.
  void inspect() {
    if (mutant != mutation::begun_late) epoch.begin();
    if (mutant != mutation::asked_late) asked.store(true, orders::release);
    atomics::heavy_fence();
    if (mutant == mutation::begun_late) epoch.begin();
    if (mutant == mutation::asked_late) asked.store(true, orders::release);
    if (mutant == mutation::withdrawn_early) asked.store(false, orders::release);
    if (state.is_suspended()) static_cast<void>(int(record($)));
    asked.store(false, orders::release);
    epoch.end();
  }
};

int main() { return model::holds<run_and_read>(300'000) ? 0 : 1; }
