// The counting semaphore under Relacy: each permit is in one place, a time-out and a cancellation take none, and nobody
// sleeps for ever while there is one. It is semaphore.cpp written over again, step by step.
//
// MUTANT: left_linked         a waiter whose time is over does not unlink its node: a release ends its next wait, which
//                             is for something else
// MUTANT: lost_claim_served   a release gives a permit to one whose wait is over
// MUTANT: unlocked_early      the lock is released before the wait can be claimed
// MUTANT: permit_taken_twice  who is given a permit takes another
// MUTANT: leaves_silently     a waiter for two permits gives up, and does not serve those behind it that want one
// MUTANT: passed_over         a later caller takes the permit that an older waiter for two has to wait for
// MUTANT: a_not_released      the next to get a permit does not see what the last one wrote
// MUTANT: a_not_acquired

#include "relacy_fibers.hpp"

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

using fibers = model::fibers<
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>>>>;
using agent = fibers::agent;
using wait_node = fibers::wait_node;
using model::cancellable, model::timed, model::wake_reason, model::claim_result;

enum class status { ok, timeout, cancelled };

class semaphore {
 public:
  semaphore() { permits_($) = 0; }

  bool try_acquire() {
    guard_.lock();
    const bool there = take(1);
    guard_.unlock();
    return there;
  }

  status acquire(agent& self, wait_node& node, timed timed = timed::no, int n = 1) {
    if (self.word.stop_requested()) return status::cancelled;
    guard_.lock();
    if (take(n)) {
      guard_.unlock();
      return status::ok;
    }
    node.begin(self);
    node.wanted = n;
    switch (wait(node, timed)) {
      case wake_reason::timed_out: return status::timeout;
      case wake_reason::cancelled: return status::cancelled;
      default: break;
    }
    if (mutant == mutation::permit_taken_twice) try_acquire();
    return status::ok;
  }

  void release(int n = 1) {
    agent* woken[4];
    int count = 0;
    guard_.lock();
    permits_($) = int(permits_($)) + n;
    serve_oldest(woken, count);
    guard_.unlock();
    for (int i = 0; i < count; ++i) woken[i]->resume();
  }

  // Whether a permit is taken although another waits; it is given back.
  bool passes_by() {
    guard_.lock();
    const bool waits = !queue_.empty(), taken = take(1);
    guard_.unlock();
    if (taken) release();
    return waits && taken;
  }

  // Nobody uses it any more.
  int permits() { return int(permits_($)); }
  bool has_waiters() { return !queue_.empty(); }

 private:
  bool take(int n) {
    const int permits = int(permits_($));
    if (permits < n || (!queue_.empty() && mutant != mutation::passed_over)) return false;
    permits_($) = permits - n;
    return true;
  }

  // Guard held.
  void serve_oldest(agent** woken, int& count) {
    while (!queue_.empty()) {
      const int wanted = queue_.oldest().wanted;
      if (wanted > int(permits_($))) return;
      const auto next = claim_front();
      if (!next) continue;
      permits_($) = int(permits_($)) - wanted;
      if (next.who) woken[count++] = next.who;
    }
  }

  // Guard held, which is released.
  wake_reason wait(wait_node& node, timed timed) {
    if (mutant == mutation::unlocked_early) {
      queue_.push(node);
      guard_.unlock();
      node.who->word.prepare();
      const wake_reason reason = node.who->suspend(nullptr, cancellable::yes, timed);
      guard_.lock();
      queue_.remove(node);
      guard_.unlock();
      return reason;
    }
    queue_.push(node);
    const wake_reason reason = node.who->suspend(&guard_, cancellable::yes, timed);
    if (reason == wake_reason::notified || mutant == mutation::left_linked) return reason;
    agent* woken[4];
    int count = 0;
    guard_.lock();
    queue_.remove(node);
    if (mutant != mutation::leaves_silently) serve_oldest(woken, count);
    guard_.unlock();
    for (int i = 0; i < count; ++i) woken[i]->resume();
    return reason;
  }

  fibers::claimed_wait claim_front() {
    if (mutant != mutation::lost_claim_served) return queue_.claim_front();
    wait_node* const node = queue_.pop();
    return {node, node->who->word.claim(wake_reason::notified) == claim_result::won ? node->who : nullptr};
  }

  fibers::spin_lock guard_;
  rl::var<int> permits_;
  fibers::wait_queue queue_;
};

// Three in turn use what one permit guards. The first has a time limit or may be asked to stop; when its time was over
// it waits for something else, which it gets only from there.
struct one_permit : rl::test_suite<one_permit, 4> {
  semaphore turn, other;
  agent fiber[2];
  wait_node nodes[3];
  rl::var<int> count;
  int inside = 0, entries = 0;
  bool stops = false, got_other = false;

  void before() {
    stops = rl::rand(2);
    count($) = 0;
  }
  void thread(unsigned id) {
    switch (id) {
      case 0: {
        const status how = turn.acquire(fiber[0], nodes[0], stops ? timed::no : timed::yes);
        fiber[0].finish();
        if (how == status::ok) {
          use();
          turn.release();
        } else {
          RL_ASSERT(how == (stops ? status::cancelled : status::timeout));
          got_other = other.acquire(fiber[0], nodes[2]) == status::ok;
        }
        return;
      }
      case 1:
        RL_ASSERT(turn.acquire(fiber[1], nodes[1]) == status::ok);
        use();
        turn.release();
        return;
      case 2: use_and_release(); return;
      case 3:
        if (stops) {
          fiber[0].stop();
        } else {
          fiber[0].fire();
        }
        return;
    }
  }
  void after() {
    RL_ASSERT(turn.permits() == 1 && !turn.has_waiters());
    RL_ASSERT(other.permits() == !got_other && !other.has_waiters());
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

// Two permits at once, or one after the other, for two who wait, of whom one may leave.
struct two_permits : rl::test_suite<two_permits, 4> {
  semaphore permits;
  agent fiber[2];
  wait_node nodes[2];
  bool stops = false, at_once = false;
  int taken = 0;

  void before() {
    stops = rl::rand(2);
    at_once = rl::rand(2);
  }
  void thread(unsigned id) {
    if (id < 2) {
      const status how = permits.acquire(fiber[id], nodes[id], id == 0 && !stops ? timed::yes : timed::no);
      fiber[id].finish();
      RL_ASSERT(id == 0 || how == status::ok);
      taken += how == status::ok;
    } else if (id == 2) {
      permits.release(at_once ? 2 : 1);
      if (!at_once) permits.release();
    } else if (stops) {
      fiber[0].stop();
    } else {
      fiber[0].fire();
    }
  }
  void after() { RL_ASSERT(permits.permits() == 2 - taken && !permits.has_waiters()); }
};

// The first wants two permits and may leave; the second wants one of the two, behind it or before it. A third tries for
// one that is there only as long as the first waits for another.
struct wide_request : rl::test_suite<wide_request, 4> {
  semaphore permits;
  agent fiber[2];
  wait_node nodes[2];
  bool stops = false;

  void before() {
    stops = rl::rand(2);
    permits.release();
  }
  void thread(unsigned id) {
    switch (id) {
      case 0: {
        const status how = permits.acquire(fiber[0], nodes[0], stops ? timed::no : timed::yes, 2);
        fiber[0].finish();
        if (how == status::ok) permits.release(2);
        return;
      }
      case 1:
        RL_ASSERT(permits.acquire(fiber[1], nodes[1]) == status::ok);
        permits.release();
        return;
      case 2: RL_ASSERT(!permits.passes_by()); return;
      case 3:
        if (stops) {
          fiber[0].stop();
        } else {
          fiber[0].fire();
        }
        return;
    }
  }
  void after() { RL_ASSERT(permits.permits() == 1 && !permits.has_waiters()); }
};

int main() {
  constexpr unsigned interleavings = 500'000;
  return model::holds<one_permit>(interleavings) && model::holds<two_permits>(interleavings) &&
                 model::holds<wide_request>(interleavings)
             ? 0
             : 1;
}
