// The slot under Relacy: each item that was put there is taken exactly once, by a thread that sees it.
//
// MUTANT: a_not_released     a thief does not see the item
// MUTANT: b_no_light_fence   the owner does not see the steal
// MUTANT: b_no_heavy_fence   the thief does not see the owner's taking
// MUTANT: not_acquired
// MUTANT: not_exchanged      two steal at once

#include <ulexite/runtime/queue/next_slot.hpp>

#include "relacy_atomics.hpp"

enum class mutation { none, a_not_released, b_no_light_fence, b_no_heavy_fence, not_acquired, not_exchanged };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::b_no_light_fence, model::no_light_fence>,
                                           model::by<mutation::b_no_heavy_fence, model::no_heavy_fence>,
                                           model::by<mutation::not_acquired, model::acquire_is_relaxed>,
                                           model::by<mutation::not_exchanged, model::exchange_is_load_and_store>>>;

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
        if (slot.filled()) take(slot.steal());
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
