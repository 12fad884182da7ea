// A worker that is offered during a system call, under Relacy: one thread has it at a time, sees all of it, and it is
// never left without a thread.
//
// MUTANT: a_not_released
// MUTANT: a_not_acquired
// MUTANT: a_not_exchanged
// MUTANT: any_is_withdrawn    a thread withdraws the offer of the thread that has taken the worker over

#include <ulexite/runtime/threads/handoff_offer.hpp>

#include "relacy_atomics.hpp"

enum class mutation { none, a_not_released, a_not_acquired, a_not_exchanged, any_is_withdrawn };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>,
                                           model::by<mutation::a_not_exchanged, model::exchange_is_load_and_store>>>;

// The first thread has the worker. Each thread that has it makes two calls.
struct one_thread_has_the_worker : rl::test_suite<one_thread_has_the_worker, 3> {
  struct own_thread {
    unsigned id = 0;
  } threads[3];
  ulexite::detail::handoff_offer<own_thread, atomics> offer;
  rl::var<unsigned> runs_on;
  int at_the_end = 0;

  void before() { runs_on($) = 0; }

  void thread(unsigned id) {
    if (id != 0 && !take_over(id)) return;
    for (int call = 0; call < 2; ++call) {
      offer.make(threads[id]);
      if (!(mutant == mutation::any_is_withdrawn ? offer.accept() : offer.withdraw(threads[id]))) return;
      RL_ASSERT(unsigned(runs_on($)) == id);
    }
    ++at_the_end;
  }

  bool take_over(unsigned id) {
    if (!offer.accept()) return false;
    RL_ASSERT(unsigned(runs_on($)) != id);
    runs_on($) = id;
    return true;
  }

  void after() { RL_ASSERT(at_the_end == 1); }
};

int main() { return model::holds<one_thread_has_the_worker>(1'000'000) ? 0 : 1; }
