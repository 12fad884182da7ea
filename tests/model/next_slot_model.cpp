// The run slot under Relacy: each item that was put there is taken exactly once, by one that sees it.
//
// MUTANT: A_NOT_RELEASED     a raider does not see the item
// MUTANT: B_NO_LIGHT_FENCE   the owner does not see the raid
// MUTANT: B_NO_HEAVY_FENCE   the raider does not see the owner's taking
// MUTANT: NOT_ACQUIRED
// MUTANT: NOT_EXCHANGED      two raid at once

#include <ulexite/runtime/queue/next_slot.hpp>

#include "relacy_atomics.hpp"

#if defined(MUTANT_A_NOT_RELEASED)
using atomics = model::relacy_atomics<model::release_is_relaxed>;
#elif defined(MUTANT_B_NO_LIGHT_FENCE)
using atomics = model::relacy_atomics<model::no_light_fence>;
#elif defined(MUTANT_B_NO_HEAVY_FENCE)
using atomics = model::relacy_atomics<model::no_heavy_fence>;
#elif defined(MUTANT_NOT_ACQUIRED)
using atomics = model::relacy_atomics<model::acquire_is_relaxed>;
#elif defined(MUTANT_NOT_EXCHANGED)
using atomics = model::relacy_atomics<model::exchange_is_load_and_store>;
#else
using atomics = model::relacy_atomics<>;
#endif

struct item {
  rl::var<int> content;
  int takers = 0;

  item() { content($) = 0; }
};

struct one_taker_each : rl::test_suite<one_taker_each, 3> {
  static constexpr int items = 3;

  ulexite::detail::basic_next_slot<item, atomics> slot;
  item all[items];

  void thread(unsigned id) {
    if (id != 0) {
      for (int i = 0; i < 2; ++i)
        if (slot.filled()) take(slot.raid());
      return;
    }
    for (item& each : all) {
      each.content($) = 1;
      if (slot.filled()) take(slot.take());
      slot.put(each);
      if (rl::rand(2)) take(slot.take());
    }
    take(slot.take());
  }

  void after() {
    for (const item& each : all) RL_ASSERT(each.takers == 1);
    RL_ASSERT(!slot.filled());
  }

  static void take(item* taken) {
    if (!taken) return;
    RL_ASSERT(int(taken->content($)) == 1);
    RL_ASSERT(++taken->takers == 1);
  }
};

int main() { return model::holds<one_taker_each>(1'000'000) ? 0 : 1; }
