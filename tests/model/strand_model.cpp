// The turns in a strand under Relacy: the text that ships. Three workers dispatch four members, as strand::run does.
// Two members never run at the same time. Each sees the writes of the one before it, and gets all its turns. If a
// member is forgotten, its worker waits for it, which Relacy reports as a deadlock.
//
// MUTANT: not_taken           the strand is not taken for the next member
// MUTANT: freed_too_early     the strand is free while the next member is on its way
// MUTANT: a_not_released      the next member does not see the last member's writes
// MUTANT: a_not_acquired

#include <ulexite/runtime/queue/strand_turn.hpp>

#include "relacy_atomics.hpp"

enum class mutation { none, not_taken, freed_too_early, a_not_released, a_not_acquired };
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>>;

constexpr int workers = 3, members = 4, turns_each = 2;

struct member {
  member* next = nullptr;
  int turns = 0;
};

struct strand_of_three_workers : rl::test_suite<strand_of_three_workers, workers> {
  ulexite::detail::strand_turn<member, atomics> turn;
  member all[members];
  rl::var<int> inside;  // written by the running member, without a lock: two running members are a data race

  // The queue that the workers take from.
  model::relacy_mutex mutex;
  model::relacy_condition_variable changed;
  ulexite::detail::intrusive_queue<member> runnable;
  int left = members * turns_each;

  void before() {
    inside($) = 0;
    for (member& each : all) runnable.push(each);
  }
  void after() {
    RL_ASSERT(inside($) == members * turns_each);
    for (const member& each : all) RL_ASSERT(each.turns == turns_each);
  }

  void add(member& one) {
    std::unique_lock lock(mutex);
    runnable.push(one);
    changed.notify_one();
  }

  void run_bound(member& one) {
    inside($) = inside($) + 1;
    ++one.turns;
  }

  void finish(member& one) {
    if (one.turns < turns_each) add(one);
    std::unique_lock lock(mutex);
    if (--left == 0) changed.notify_all();
  }

  // As strand::run.
  void dispatch(member& first) {
    if (!turn.try_acquire(first)) return;
    member* one = &first;
    for (int turns = 1;; ++turns) {
      run_bound(*one);
      member& ran = *one;
      // It is made runnable before the strand goes to the next member, as by complete_switch.
      finish(ran);
      one = turn.release();
      if (one && mutant == mutation::freed_too_early) {
        static_cast<void>(turn.release());
        static_cast<void>(turn.try_acquire(*one));
      }
      if (!one) return;
      if (turns == 2 || rl::rand(2)) {
        if (mutant != mutation::not_taken) turn.pass_to(*one);
        add(*one);
        return;
      }
    }
  }

  void thread(unsigned) {
    for (;;) {
      member* one = nullptr;
      {
        std::unique_lock lock(mutex);
        while (left > 0 && runnable.empty()) changed.wait(lock);
        if (left == 0) return;
        one = runnable.pop();
      }
      dispatch(*one);
    }
  }
};

int main() { return model::holds<strand_of_three_workers>(200'000) ? 0 : 1; }
