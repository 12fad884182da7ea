// The spin lock under Relacy: one holder at a time, who sees what the last one wrote.
//
// MUTANT: A_NOT_RELEASED
// MUTANT: A_NOT_ACQUIRED
// MUTANT: A_NOT_EXCHANGED

#include <ulexite/base/spin_lock.hpp>

#include "relacy_atomics.hpp"

#if defined(MUTANT_A_NOT_RELEASED)
using atomics = model::relacy_atomics<model::release_is_relaxed>;
#elif defined(MUTANT_A_NOT_ACQUIRED)
using atomics = model::relacy_atomics<model::acquire_is_relaxed>;
#elif defined(MUTANT_A_NOT_EXCHANGED)
using atomics = model::relacy_atomics<model::exchange_is_load_and_store>;
#else
using atomics = model::relacy_atomics<>;
#endif

struct one_holder_at_a_time : rl::test_suite<one_holder_at_a_time, 3> {
  ulexite::detail::basic_spin_lock<atomics> lock;
  rl::var<int> count;
  int inside = 0, entries = 0;

  void before() { count($) = 0; }

  void thread(unsigned id) {
    lock.lock();
    enter();
    lock.unlock();
    if (id == 0) {
      if (!lock.try_lock()) return;
    } else {
      lock.lock();
    }
    enter();
    lock.unlock();
  }

  void after() { RL_ASSERT(int(count($)) == entries); }

  void enter() {
    RL_ASSERT(++inside == 1);
    count($) = int(count($)) + 1;
    ++entries;
    --inside;
  }
};

int main() { return model::holds<one_holder_at_a_time>(1'000'000) ? 0 : 1; }
