// A fork under Relacy. Its function is called exactly once, by a thread that sees the earlier writes of the forking
// fiber. The forking fiber continues only after the call. Then no thread reads the branch. The deque, the branch's
// outcome and the wait word are the shipped ones.
//
// MUTANT: a_not_released       the forking fiber does not see the new fiber
// MUTANT: a_not_acquired       the same from the other end
// MUTANT: not_exchanged        taker and waiter miss each other
// MUTANT: no_light_fence       owner and thief both take the branch
// MUTANT: no_heavy_fence       the same
// MUTANT: told_too_early       the outcome is published before the new fiber is made
// MUTANT: looked_at_afterwards the taker reads the branch after it has published the outcome
// MUTANT: not_prepared         the waiter is stored before its word is prepared

#include "relacy_library.hpp"

enum class mutation {
  none,
  a_not_released,
  a_not_acquired,
  not_exchanged,
  no_light_fence,
  no_heavy_fence,
  told_too_early,
  looked_at_afterwards,
  not_prepared
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders;

#include "relacy_agents.hpp"

#include <ulexite/runtime/fork/branch_outcome.hpp>
#include <ulexite/runtime/queue/deque.hpp>

using atomics = model::relacy_atomics<>;

using news_atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>,
                                           model::by<mutation::not_exchanged, model::exchange_is_load_and_store>>>;

using deque_atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::no_light_fence, model::no_light_fence>,
                                           model::by<mutation::no_heavy_fence, model::no_heavy_fence>>>;

using ulexite::detail::deque_order;

constexpr std::uintptr_t declined = 1, as_fiber = 3;

struct branch {
  rl::var<int> frame;  // of the forking fiber: read by a taker, written after the branch has ended
  rl::var<int> fiber;  // made by the taker
  ulexite::detail::branch_outcome<model::fiber, news_atomics> outcome;
  int calls = 0;

  void call() { RL_ASSERT(++calls == 1); }

  // The taker. The call itself is where the new fiber would run; its end is another protocol.
  void start() {
    RL_ASSERT(int(frame($)) == 1);
    const bool room = rl::rand(3) != 0;
    if (mutant == mutation::told_too_early) publish(room ? as_fiber : declined);
    if (room) {
      fiber($) = 1;
      if (mutant != mutation::told_too_early) call();
    }
    if (mutant != mutation::told_too_early) publish(room ? as_fiber : declined);
    if (mutant == mutation::looked_at_afterwards) RL_ASSERT(int(frame($)) != 7);
  }
  void publish(std::uintptr_t what) {
    if (model::fiber* const waiter = outcome.publish(what)) waiter->resume();
  }

  // The forking fiber, when it could not take the branch back.
  void wait(model::fiber& self) {
    const bool waits = outcome.known() == 0 && outcome.wait_for(self);
    if (waits && mutant == mutation::not_prepared) self.word.prepare();
    if (waits) self.suspend(nullptr, true, false, false);
    const std::uintptr_t told = outcome.known();
    RL_ASSERT(told == declined || told == as_fiber);
    if (told == as_fiber) {
      RL_ASSERT(int(fiber($)) == 1);
    } else {
      call();
    }
    over();
  }
  void over() { frame($) = 2; }
};

// The fiber forks twice on its worker, the second time inside the first branch. Then it stays there, or moves to
// another worker (thread 2), while its old worker takes branches. Thread 1 steals.
struct each_is_called_once : rl::test_suite<each_is_called_once, 3> {
  branch branches[2];
  ulexite::detail::deque<branch, 2, deque_order::last_in_first_out, deque_atomics> forks;
  model::fiber forker;
  atomics::atomic<int> left{0};  // 1: the fiber continues on the other worker; 2: it stayed

  void thread(unsigned id) {
    switch (id) {
      case 0: worker(); return;
      case 1:
        for (int i = 0; i < 2; ++i)
          if (branch* const stolen = forks.steal()) stolen->start();
        return;
      default: other_worker();
    }
  }

  void worker() {
    for (branch& forked : branches) {
      forked.frame($) = 1;
      RL_ASSERT(forks.push(forked));
    }
    if (rl::rand(2)) {
      left.store(1, rl::mo_release);
      while (branch* const taken = rl::rand(2) ? forks.pop_bottom() : forks.pop_oldest()) taken->start();
      return;
    }
    left.store(2, rl::mo_release);
    // The fiber was suspended for a moment, and its worker has taken a branch.
    if (rl::rand(2))
      if (branch* const taken = rl::rand(2) ? forks.pop_bottom() : forks.pop_oldest()) taken->start();
    for (int i : {1, 0}) {
      if (try_pop(branches[i])) {
        branches[i].call();
        branches[i].over();
      } else {
        branches[i].wait(forker);
      }
    }
  }

  // fork_queue::try_pop
  bool try_pop(branch& forked) {
    branch* const youngest = forks.pop_bottom();
    if (!youngest || youngest == &forked) return youngest;
    if (forked.outcome.known() != 0) {
      RL_ASSERT(forks.push(*youngest));
      return false;
    }
    for (branch* above = youngest; above; above = forks.pop_bottom()) {
      if (above == &forked) return true;
      above->start();
    }
    return false;
  }

  void other_worker() {
    int where = 0;
    while ((where = left.load(rl::mo_acquire)) == 0) atomics::pause(0);
    if (where == 2) return;
    for (int i : {1, 0}) branches[i].wait(forker);
  }

  void after() {
    for (branch& forked : branches) RL_ASSERT(forked.calls == 1 && int(forked.frame($)) == 2);
  }
};

int main() { return model::holds<each_is_called_once>(1'000'000) ? 0 : 1; }
