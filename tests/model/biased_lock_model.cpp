// The biased lock under Relacy. There is one holder at a time, and it sees the writes of the last one. A worker gets
// the bias and loses it again.
//
// MUTANT: a_no_light_fence    the favoured worker does not see that its bias was taken away
// MUTANT: a_no_heavy_fence    another thread does not see the favoured worker inside
// MUTANT: b_not_released      the next holder does not see the last holder's writes
// MUTANT: b_not_acquired
// MUTANT: not_exchanged       two other threads are inside

#include <ulexite/base/biased_lock.hpp>

#include "relacy_atomics.hpp"

enum class mutation { none, a_no_light_fence, a_no_heavy_fence, b_not_released, b_not_acquired, not_exchanged };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_no_light_fence, model::no_light_fence>,
                                           model::by<mutation::a_no_heavy_fence, model::no_heavy_fence>,
                                           model::by<mutation::b_not_released, model::release_is_relaxed>,
                                           model::by<mutation::b_not_acquired, model::acquire_is_relaxed>,
                                           model::by<mutation::not_exchanged, model::exchange_is_load_and_store>>>;

// The bias is given after two locks in a row, to two workers alternately. A plain thread never gets it.
struct biases_come_and_go : rl::test_suite<biases_come_and_go, 3> {
  static constexpr unsigned plain = 2;

  ulexite::detail::basic_biased_lock<atomics, 1> lock;
  rl::var<int> count;
  int workers[2] = {}, inside = 0, entries = 0;

  void before() { count($) = 0; }

  void thread(unsigned id) {
    const void* const self = id == plain ? nullptr : &workers[id];
    const int times = id == plain ? 2 : 4;
    for (int i = 0; i < times; ++i) enter_and_leave(lock.lock(self));
  }

  void after() { RL_ASSERT(int(count($)) == entries); }

  template <class Part>
  void enter_and_leave(Part& held) {
    RL_ASSERT(++inside == 1);
    count($) = int(count($)) + 1;
    ++entries;
    --inside;
    held.unlock();
  }
};

int main() { return model::holds<biases_come_and_go>(1'000'000) ? 0 : 1; }
