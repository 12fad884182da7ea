// The wait group under Relacy: the text that ships. A wait ends when the count is zero, and sees the writes before each
// done(). Then the group may be destroyed, although the done() that ended the wait has not returned.
//
// MUTANT: a_not_released   a wait does not see the writes before done
// MUTANT: a_not_acquired   the same from the other end
// MUTANT: silent_done      the last done wakes no waiter
//   sync/wait_group.cpp: if (zero) queue_.claim_all(woken); =>
// MUTANT: done_unguarded   the last done changes the count and leaves, although a waiter is in the queue
//   sync/wait_group.cpp: if (next == waited_bit) { => if (false) {
// MUTANT: not_marked       a waiter does not announce itself
//   sync/wait_group.cpp: !word_.compare_exchange_weak(word, word | waited_bit, => !word_.compare_exchange_weak(word, word,
// MUTANT: taken_for_over   a wait that finds zero returns, although the last done is still inside
//   sync/wait_group.cpp: if (word_.load(std::memory_order_acquire) == 0) {  // A => if (word_.load(std::memory_order_acquire) / one == 0) {
//   sync/wait_group.cpp: if (zero) queue_.claim_all(woken); => if (zero) queue_.claim_all(woken); model::pause_by_chance();
// MUTANT: left_linked      a waiter that has timed out leaves its node in the queue
//   sync/wait/wait_queue.hpp: if (node.linked()) intrusive_list<wait_node>::remove(node); =>
//   sync/wait_group.cpp: detail::wait_node node(self); => auto& node = model::left_behind<detail::wait_node>(self);

#include "relacy_library.hpp"

enum class mutation {
  none,
  a_not_released,
  a_not_acquired,
  silent_done,
  done_unguarded,
  not_marked,
  taken_for_over,
  left_linked
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                      model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>;
using detail_orders = model::orders;

#include "relacy_agents.hpp"

#include <ulexite/sync/wait_group.cpp>

const char ULEXITE_BUILT_AS = 0;

using namespace std::chrono_literals;

// Two do their share. Two wait, one of them with a time limit and then again, or until it is asked to stop. The last of
// the two to return destroys the group.
struct done_once : rl::test_suite<done_once, 5> {
  model::fiber fibers[2];
  std::optional<ulexite::wait_group> shares;
  rl::var<int> written[2];
  model::relacy_atomic<int, model::orders, false> left{2};
  bool stops = false;

  void before() {
    shares.emplace(2);
    for (auto& each : written) each($) = 0;
    stops = rl::rand(2);
  }
  void thread(unsigned id) {
    if (id >= 3) {
      written[id - 3]($) = 1;
      shares->done();
    } else if (id == 2) {
      if (stops) {
        fibers[0].stop();
      } else {
        fibers[0].fire();
      }
    } else {
      fibers[id].begin();
      if (wait(id))
        for (auto& each : written) RL_ASSERT(int(each($)) == 1);
      fibers[id].finish();
      if (left.fetch_sub(1, rl::mo_acq_rel) == 1) shares.reset();
    }
  }
  // False if it was cancelled.
  bool wait(unsigned id) try {
    if (id == 1 || stops || !shares->wait_for(1s)) shares->wait();
    return true;
  } catch (const ulexite::operation_cancelled&) {
    RL_ASSERT(id == 0 && stops);
    return false;
  }
};

// The group is used twice: a waiter adds a share after the first round.
struct done_twice : rl::test_suite<done_twice, 3> {
  model::fiber fibers[2];
  ulexite::wait_group shares{1}, added{1};
  rl::var<int> written;

  void before() { written($) = 0; }
  void thread(unsigned id) {
    if (id < 2) fibers[id].begin();
    switch (id) {
      case 0:
        shares.wait();
        RL_ASSERT(int(written($)) == 1);
        shares.add();
        added.done();
        shares.wait();
        RL_ASSERT(int(written($)) == 2);
        return;
      case 1:
        added.wait();
        written($) = 2;
        shares.done();
        return;
      case 2:
        written($) = 1;
        shares.done();
        return;
    }
  }
  void after() { RL_ASSERT(shares.count() == 0); }
};

int main() { return model::holds<done_once>(150'000) && model::holds<done_twice>(50'000) ? 0 : 1; }
