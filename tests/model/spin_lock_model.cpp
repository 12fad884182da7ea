// The spin lock under Relacy: one holder at a time, and it sees the last holder's writes. Also an argument of task.hpp:
// a flag is set with the lock held. A thread that finds the flag set, and then the lock free, sees the holder's writes.
//
// MUTANT: a_not_released
// MUTANT: a_not_acquired
// MUTANT: a_not_exchanged

#include <ulexite/base/spin_lock.hpp>

#include "relacy_atomics.hpp"

enum class mutation { none, a_not_released, a_not_acquired, a_not_exchanged };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>,
                                           model::by<mutation::a_not_exchanged, model::exchange_is_load_and_store>>>;

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

// A fiber that ends finds that its handle was destroyed (task.hpp B): no thread uses the memory from then on.
struct last_of_two : rl::test_suite<last_of_two, 2> {
  ulexite::detail::basic_spin_lock<atomics> lock;
  atomics::atomic<bool> released{false};
  rl::var<int> memory;

  void before() { memory($) = 0; }

  void thread(unsigned id) {
    if (id == 0) {
      lock.lock();
      released.store(true, atomics::release);
      memory($) = 1;
      lock.unlock();
    } else if (released.load(atomics::acquire) && lock.is_free()) {
      memory($) = 2;
    }
  }
};

int main() { return model::holds<one_holder_at_a_time>(1'000'000) && model::holds<last_of_two>(100'000) ? 0 : 1; }
