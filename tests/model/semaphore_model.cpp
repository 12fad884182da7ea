// The counting semaphore under Relacy: the text that ships. Each permit is in one place, a time-out and a cancellation
// take none, and no waiter sleeps for ever while there is one.
//
// MUTANT: left_linked         a waiter that has timed out does not unlink its node: a release ends its next wait, which
//                             is for something else
//   sync/semaphore.cpp: wait_queue::remove(node);\n =>
//   sync/semaphore.cpp: wait_node node(self); => model::left_behind<wait_node> left(self); auto& node = left.node;
// MUTANT: lost_claim_served   a release gives a permit to a waiter after the end of its wait
//   sync/semaphore.cpp: if (!claimed) continue; =>
//   sync/semaphore.cpp: wait_queue::serve(claimed, woken); => if (claimed) wait_queue::serve(claimed, woken);
// MUTANT: unlocked_early      the lock is released before the wait can be claimed
//   sync/semaphore.cpp: add_waiter(node, n); => add_waiter(node, n); guard_.unlock(); guard_.lock();
// MUTANT: permit_taken_twice  a waiter that is given a permit takes another
//   sync/semaphore.cpp: == wake_reason::notified) return true; => == wake_reason::notified) return try_acquire(), true;
// MUTANT: leaves_silently     a waiter for two permits leaves, and does not serve the waiters behind it that want one
//   sync/semaphore.cpp: serve_oldest(woken);  // it may => // it may
// MUTANT: passed_over         a later caller takes a permit that an older waiter for two needs
//   sync/semaphore.cpp: if (n > 0 && (permits_ < n || !queue_.nobody_waits())) return false; => if (n > 0 && permits_ < n) return false;
// MUTANT: a_not_released      the next owner of a permit does not see the last owner's writes (spin_lock.hpp A)
// MUTANT: a_not_acquired      the same from the other end
//
// EDIT: the field under the guard
//   sync/semaphore.hpp: std::ptrdiff_t permits_; => model::checked<std::ptrdiff_t> permits_;

#include "relacy_library.hpp"

enum class mutation {
  none,
  left_linked,
  lost_claim_served,
  unlocked_early,
  permit_taken_twice,
  leaves_silently,
  passed_over,
  a_not_released,
  a_not_acquired
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders;
using detail_orders = model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                       model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>;

#include "relacy_agents.hpp"

#include <ulexite/sync/semaphore.cpp>

using namespace std::chrono_literals;
using semaphore = ulexite::counting_semaphore<>;

// Reads the private fields, with the rights of select's case.
class ulexite::detail::acquire_case {
 public:
  // Whether a permit is taken although another waits; it is given back.
  static bool passes_by(semaphore& permits) {
    semaphore_core& core = permits.core_;
    core.guard_.lock();
    const bool waits = !core.queue_.empty(), taken = core.take(1);
    core.guard_.unlock();
    if (taken) permits.release();
    return waits && taken;
  }
};

// At the end: there are this many permits, and no waiter.
bool holds_only(semaphore& permits, int count) {
  return (count == 0 || permits.try_acquire(count)) && !permits.try_acquire();
}

enum class status { ok, timeout, cancelled };

status acquire(semaphore& permits, bool timed = false, int n = 1) try {
  if (timed) return permits.try_acquire_for(1s, n) ? status::ok : status::timeout;
  permits.acquire(n);
  return status::ok;
} catch (const ulexite::operation_cancelled&) {
  return status::cancelled;
}

// One permit guards a variable that three threads use, one after the other. The first thread has a time limit or may be
// asked to stop. After a time-out it waits for another object, and only that object may end this wait.
struct one_permit : rl::test_suite<one_permit, 4> {
  semaphore turn{0}, other{0};
  model::fiber fibers[3];
  rl::var<int> count;
  int inside = 0, entries = 0;
  bool stops = false, got_other = false;

  void before() {
    stops = rl::rand(2);
    count($) = 0;
  }
  void thread(unsigned id) {
    if (id < 3) fibers[id].begin();
    switch (id) {
      case 0: {
        const status how = acquire(turn, !stops);
        fibers[0].finish();
        if (how == status::ok) {
          use();
          turn.release();
        } else {
          RL_ASSERT(how == (stops ? status::cancelled : status::timeout));
          got_other = acquire(other) == status::ok;
        }
        return;
      }
      case 1:
        turn.acquire();
        use();
        turn.release();
        return;
      case 2: use_and_release(); return;
      case 3:
        if (stops) {
          fibers[0].stop();
        } else {
          fibers[0].fire();
        }
        return;
    }
  }
  void after() {
    RL_ASSERT(holds_only(turn, 1) && holds_only(other, !got_other));
    RL_ASSERT(int(count($)) == entries);
  }

  // The first permit.
  void use_and_release() {
    use();
    turn.release();
    if (turn.try_acquire()) {
      use();
      turn.release();
    }
    other.release();
  }
  void use() {
    RL_ASSERT(++inside == 1);
    count($) = int(count($)) + 1;
    ++entries;
    --inside;
  }
};

// Two permits, released together or one after the other, for two waiters. One of them may leave.
struct two_permits : rl::test_suite<two_permits, 4> {
  semaphore permits{0};
  model::fiber fibers[2];
  bool stops = false, at_once = false;
  int taken = 0;

  void before() {
    stops = rl::rand(2);
    at_once = rl::rand(2);
  }
  void thread(unsigned id) {
    if (id < 2) {
      fibers[id].begin();
      const status how = acquire(permits, id == 0 && !stops);
      fibers[id].finish();
      RL_ASSERT(id == 0 || how == status::ok);
      taken += how == status::ok;
    } else if (id == 2) {
      permits.release(at_once ? 2 : 1);
      if (!at_once) permits.release();
    } else if (stops) {
      fibers[0].stop();
    } else {
      fibers[0].fire();
    }
  }
  void after() { RL_ASSERT(holds_only(permits, 2 - taken)); }
};

// The first wants two permits and may leave; the second wants one of the two, behind it or before it. A third tries to
// take a permit that is free only while the first waits for another one.
struct wide_request : rl::test_suite<wide_request, 4> {
  semaphore permits{1};
  model::fiber fibers[2];
  bool stops = false;

  void before() { stops = rl::rand(2); }
  void thread(unsigned id) {
    if (id < 2) fibers[id].begin();
    switch (id) {
      case 0: {
        const status how = acquire(permits, !stops, 2);
        fibers[0].finish();
        if (how == status::ok) permits.release(2);
        return;
      }
      case 1:
        permits.acquire();
        permits.release();
        return;
      case 2: RL_ASSERT(!ulexite::detail::acquire_case::passes_by(permits)); return;
      case 3:
        if (stops) {
          fibers[0].stop();
        } else {
          fibers[0].fire();
        }
        return;
    }
  }
  void after() { RL_ASSERT(holds_only(permits, 1)); }
};

int main() {
  constexpr unsigned interleavings = 50'000;
  return model::holds<one_permit>(interleavings) && model::holds<two_permits>(interleavings) &&
                 model::holds<wide_request>(interleavings)
             ? 0
             : 1;
}
