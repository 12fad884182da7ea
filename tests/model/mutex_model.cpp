// The mutex and its condition variable under Relacy: the text that ships. There is one owner at a time, and it sees the
// last owner's writes. No waiter sleeps for ever, and no notification is lost. Chance replaces the clock.
//
// MUTANT: a_not_released      the next owner does not see the last owner's writes (by the word alone)
// MUTANT: a_not_acquired      the same from the other end
// MUTANT: a_not_exchanged     two take the free mutex
// MUTANT: bit_set_late        requeue_from_condvar sets waiters_bit after it has queued the others, not with the check
//   sync/mutex.cpp: word_.fetch_or(waiters_bit, std::memory_order_relaxed);  // lock and unlock => word_.load(std::memory_order_relaxed);  //
//   sync/mutex.cpp: owned = result != detail::claim_result::lost;\n  } => owned = result != detail::claim_result::lost;\n  }\n  word_.fetch_or(waiters_bit, std::memory_order_relaxed);
// MUTANT: hand_over_unguarded handed_over is read without the guard, by a waiter that was claimed before its sleep
//   sync/mutex.cpp: guard_.lock();\n  if (waiter.handed_over || => const bool mine = waiter.handed_over;\n  guard_.lock();\n  if (mine ||
// MUTANT: queue_forgotten     a contended unlock does not read the queue
//   sync/mutex.cpp: const detail::claimed_wait next = queue_.claim_oldest(); => const detail::claimed_wait next; woken = true;
// MUTANT: bit_forgotten       the same for an unlock after another one has woken one of two waiters
//   sync/mutex.cpp: next | (word & waiters_bit), => next,
// MUTANT: left_linked         a waiter that has timed out does not unlink its node
//   sync/mutex.cpp: != detail::wake_reason::notified) {\n      unlink(waiter); => != detail::wake_reason::notified) {
//   sync/mutex.cpp: detail::mutex_waiter waiter(self); => model::left_behind<detail::mutex_waiter> left(self); auto& waiter = left.node;
// MUTANT: notification_lost   a wait that was notified and has timed out forgets the notification
//   sync/condition_variable.cpp: if (node.notified) return std::cv_status::no_timeout; =>
// MUTANT: given_up_early      an unlock reads the mutex after its release, when the next owner may have destroyed it
//   sync/mutex.cpp: if (release_to(0, woken)) return; => if (release_to(0, woken)) return (void)word_.load(std::memory_order_relaxed);
// MUTANT: awake_counted       a waiter that was claimed while awake counts as woken
//   sync/mutex.cpp: woken = next.who != nullptr; => woken = true;
//   sync/mutex.cpp: if (release_to(0, woken)) return; => model::pause_by_chance(); if (release_to(0, woken)) return;
// MUTANT: wait_not_prepared   a notifier before the switch finds no wait to claim
//   sync/condition_variable.cpp: self.word.prepare();\n =>
//   sync/condition_variable.cpp: of.unlock(); => of.unlock(); self.word.prepare();
//
// EDIT: the fields under the two guards
//   sync/wait/mutex_waiter.hpp: bool handed_over = false; => model::checked<bool> handed_over = false;
//   sync/wait/mutex_waiter.hpp: bool requeued = false; => model::checked<bool> requeued = false;
//   sync/condition_variable.hpp: bool notified = false; => model::checked<bool> notified = false;

#include "relacy_library.hpp"

enum class mutation {
  none,
  a_not_released,
  a_not_acquired,
  a_not_exchanged,
  bit_set_late,
  hand_over_unguarded,
  queue_forgotten,
  bit_forgotten,
  left_linked,
  notification_lost,
  given_up_early,
  awake_counted,
  wait_not_prepared
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using class_orders = model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                      model::by<mutation::a_not_acquired, model::acquire_is_relaxed>,
                                      model::by<mutation::a_not_exchanged, model::exchange_is_load_and_store>>;
using detail_orders = model::orders;

#include "relacy_agents.hpp"

#include <ulexite/sync/condition_variable.cpp>
#include <ulexite/sync/mutex.cpp>
#include <ulexite/sync/timed_mutex.hpp>

std::string ulexite::detail::name_and_address(const void*) { return {}; }  // for errors, which do not happen

using namespace std::chrono_literals;
using locked = std::unique_lock<ulexite::mutex>;

// Three threads lock, sometimes with a time limit, until a request to stop, or only if they do not have to wait. The
// last thread destroys it.
struct one_owner_at_a_time : rl::test_suite<one_owner_at_a_time, 4> {
  std::optional<ulexite::timed_mutex> m;
  model::fiber fibers[3];
  model::guarded data;
  bool is_timed = false, stops = false;
  int left = 0;

  void before() {
    m.emplace();
    const unsigned kind = rl::rand(3);
    is_timed = kind == 1;
    stops = kind == 2;
  }
  void thread(unsigned id) {
    if (id == 3) {
      if (is_timed) fibers[0].fire();
      if (stops) fibers[0].stop();
      return;
    }
    fibers[id].begin();
    for (int round = 0; round < 2; ++round) {
      if (id == 0 && is_timed) {
        if (!m->try_lock_for(1s)) continue;
      } else if (id == 0 && stops) {
        std::error_code error;
        auto turn = ulexite::detail::acquire(reinterpret_cast<ulexite::mutex&>(*m), error);  // its private base
        if (error) continue;
        turn.release();
      } else if (id == 1 && round == 1) {
        if (!m->try_lock()) continue;
      } else {
        m->lock();
      }
      data.use();
      m->unlock();
    }
    m->lock();
    data.use();
    const bool last = ++left == 3;
    m->unlock();
    if (last) m.reset();
    fibers[id].finish();
  }
  void after() {
    RL_ASSERT(int(data.count($)) == data.entries);
    RL_ASSERT(data.entries >= (stops ? 6 : 7));
  }
};

// There is one item for two waiters. One of them has a time limit or will be cancelled. The thread that takes the item
// adds the next one, which is the last.
struct no_notification_is_lost : rl::test_suite<no_notification_is_lost, 4> {
  ulexite::mutex m;
  ulexite::condition_variable changed;
  model::fiber fibers[3];
  model::guarded data;
  rl::var<int> items;
  bool is_timed = false, stops = false, all = false, under_lock = false;
  int taken = 0;

  void before() {
    items($) = 0;
    is_timed = rl::rand(2);
    stops = rl::rand(2);
    all = rl::rand(2);
    under_lock = rl::rand(2);
  }
  void thread(unsigned id) {
    if (id == 3) {
      if (stops) {
        fibers[0].stop();
      } else if (is_timed) {
        fibers[0].fire();
      }
      return;
    }
    fibers[id].begin();
    if (id == 2) {
      bring();
    } else if (take(id == 0) && taken == 1) {
      bring();
    }
    fibers[id].finish();
  }
  // False if the wait ended first. Only waits with a time limit may be cancelled.
  bool take(bool bounded) {
    locked lock(m);
    data.use();
    bool there = int(items($)) > 0, over = false;
    while (!there && !over) {
      try {
        if (bounded && (is_timed || stops)) {
          over = changed.wait_for(lock, is_timed ? 1s : std::chrono::hours(1'000'000'000)) == std::cv_status::timeout;
        } else {
          changed.wait(lock);
        }
        there = int(items($)) > 0;
      } catch (const ulexite::operation_cancelled&) {
        RL_ASSERT(bounded && stops);
        over = true;
      }
      data.use();
    }
    if (there) {
      items($) = int(items($)) - 1;
      ++taken;
    }
    return there;
  }
  void bring() {
    locked lock(m);
    data.use();
    items($) = int(items($)) + 1;
    if (!under_lock) lock.unlock();
    all ? changed.notify_all() : changed.notify_one();
  }
  void after() { RL_ASSERT(int(data.count($)) == data.entries); }
};

// All are notified of one thing, while another uses the mutex.
struct all_are_admitted : rl::test_suite<all_are_admitted, 4> {
  ulexite::mutex m;
  ulexite::condition_variable changed;
  model::fiber fibers[4];
  model::guarded data;
  rl::var<int> ready;

  void before() { ready($) = 0; }
  void thread(unsigned id) {
    fibers[id].begin();
    locked lock(m);
    data.use();
    if (id < 2)
      while (!int(ready($))) {
        changed.wait(lock);
        data.use();
      }
    if (id == 2) ready($) = 1;
    lock.unlock();
    if (id == 2) changed.notify_all();
  }
  void after() { RL_ASSERT(int(data.count($)) == data.entries); }
};

int main() {
  constexpr unsigned interleavings = 50'000;
  const bool all = model::holds<one_owner_at_a_time>(interleavings) &&
                   model::holds<no_notification_is_lost>(interleavings) &&
                   model::holds<all_are_admitted>(interleavings);
  return all ? 0 : 1;
}
