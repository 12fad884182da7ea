// The event under Relacy: the text that ships. A wait ends when the event is set, and sees the earlier writes. Then the
// event may be destroyed, although the set() that ended the wait has not returned.
//
// MUTANT: a_not_released   a wait does not see the writes before set
// MUTANT: a_not_acquired   the same from the other end
// MUTANT: silent_set       set wakes no waiter
//   sync/event.cpp: queue_.claim_all(woken); =>
// MUTANT: set_unguarded    set changes the word and leaves, although a waiter is in the queue
//   sync/event.cpp: if (word & waited_bit) return set_and_wake(); =>
// MUTANT: not_marked       a waiter does not announce itself
//   sync/event.cpp: !word_.compare_exchange_weak(word, word | waited_bit, => !word_.compare_exchange_weak(word, word,
// MUTANT: taken_for_over   a wait that finds the event set returns, although set is still inside
//   sync/event.cpp: if (word_.load(std::memory_order_acquire) == set_bit) {  // A => if (is_set()) {
//   sync/event.cpp: queue_.claim_all(woken); => queue_.claim_all(woken); model::pause_by_chance();
// MUTANT: left_linked      a waiter that has timed out leaves its node in the queue
//   sync/wait/wait_queue.hpp: if (node.linked()) intrusive_list<wait_node>::remove(node); =>
//   sync/event.cpp: detail::wait_node node(self); => auto& node = model::left_behind<detail::wait_node>(self);

#include "relacy_library.hpp"

enum class mutation {
  none,
  a_not_released,
  a_not_acquired,
  silent_set,
  set_unguarded,
  not_marked,
  taken_for_over,
  left_linked
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                      model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>;
using detail_orders = model::orders;

#include "relacy_agents.hpp"

#include <ulexite/sync/event.cpp>

using namespace std::chrono_literals;

// One sets it. Two wait, one of them with a time limit and then again, or until it is asked to stop. The last of the
// two to return destroys it.
struct set_once : rl::test_suite<set_once, 4> {
  model::fiber fibers[2];
  std::optional<ulexite::event> waited_for;
  rl::var<int> written;
  model::relacy_atomic<int, model::orders, false> left{2};
  bool stops = false;

  void before() {
    waited_for.emplace();
    written($) = 0;
    stops = rl::rand(2);
  }
  void thread(unsigned id) {
    if (id == 2) {
      written($) = 1;
      waited_for->set();
    } else if (id == 3) {
      if (stops) {
        fibers[0].stop();
      } else {
        fibers[0].fire();
      }
    } else {
      fibers[id].begin();
      if (wait(id)) RL_ASSERT(int(written($)) == 1);
      fibers[id].finish();
      if (left.fetch_sub(1, rl::mo_acq_rel) == 1) waited_for.reset();
    }
  }
  // False if it was cancelled.
  bool wait(unsigned id) try {
    if (id == 1 || stops || !waited_for->wait_for(1s)) waited_for->wait();
    return true;
  } catch (const ulexite::operation_cancelled&) {
    RL_ASSERT(id == 0 && stops);
    return false;
  }
};

// A question and its answer. The answering thread resets the first event, and two threads wait for the second.
struct set_and_reset : rl::test_suite<set_and_reset, 3> {
  model::fiber fibers[3];
  ulexite::event asked, answered;
  rl::var<int> written;

  void before() { written($) = 0; }
  void thread(unsigned id) {
    fibers[id].begin();
    if (id == 1) {
      asked.wait();
      RL_ASSERT(int(written($)) == 1);
      asked.reset();
      written($) = 2;
      answered.set();
      return;
    }
    if (id == 0) {
      written($) = 1;
      asked.set();
    }
    if (!answered.is_set()) answered.wait();
    RL_ASSERT(int(written($)) == 2);
  }
  void after() { RL_ASSERT(!asked.is_set() && answered.is_set()); }
};

int main() { return model::holds<set_once>(150'000) && model::holds<set_and_reset>(50'000) ? 0 : 1; }
