// The mutex and its condition variable under Relacy: one owner at a time, who sees what the last one wrote; nobody
// sleeps for ever, and no notification is lost. Both are mutex.cpp and condition_variable.cpp written over again, step
// by step; what those decide by the clock is decided by chance.
//
// MUTANT: a_not_released      the next owner does not see what the last one wrote (of the word alone)
// MUTANT: a_not_acquired
// MUTANT: a_not_exchanged     two take the free mutex
// MUTANT: marked_late         admit looks whether the mutex is free, and sets the mark when it has queued the others
// MUTANT: hand_over_unguarded handed_over is read without the guard, by one who is claimed and not asleep
// MUTANT: queue_forgotten     a contended unlock does not look at the queue
// MUTANT: mark_forgotten      nor does an unlock after one that woke one of two
// MUTANT: left_linked         a waiter whose time is over does not unlink its node
// MUTANT: notification_lost   a wait that a notification and the timer end forgets the notification
// MUTANT: given_up_early      a mutex that was given up is still touched, when its next owner may have destroyed it
// MUTANT: awake_counted       a waiter that was claimed while awake is taken for one that was woken
// MUTANT: wait_not_prepared   who notifies before the switch finds nobody to claim

#include "relacy_fibers.hpp"

enum class mutation {
  none,
  a_not_released,
  a_not_acquired,
  a_not_exchanged,
  marked_late,
  hand_over_unguarded,
  queue_forgotten,
  mark_forgotten,
  left_linked,
  notification_lost,
  given_up_early,
  awake_counted,
  wait_not_prepared
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using fibers = model::fibers<model::relacy_atomics<>>;
using word_atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>,
                                           model::by<mutation::a_not_exchanged, model::exchange_is_load_and_store>>>;

using agent = fibers::agent;
using model::cancellable, model::timed, model::wake_reason, model::claim_result;

struct mutex_waiter : fibers::wait_node {
  rl::var<int> handed_over, sent_to_mutex, notified;
  bool passed_over = false;

  void begin(agent& waiter) {
    wait_node::begin(waiter);
    handed_over($) = 0;
    sent_to_mutex($) = 0;
    notified($) = 0;
    passed_over = false;
  }
};

// ---- the mutex ----

class mutex {
 public:
  mutex() { alive_($) = 1; }

  void lock(agent& self, mutex_waiter& waiter) {
    if (!take_free(self)) lock_slow(self, waiter, timed::no);
  }
  bool lock_for(agent& self, mutex_waiter& waiter) { return take_free(self) || lock_slow(self, waiter, timed::yes); }
  bool try_lock(agent& self) {
    std::uintptr_t word = word_.load(word_atomics::relaxed);
    while ((word & ~contended) == 0)
      if (word_.compare_exchange_weak(word, word | id(self), word_atomics::acquire, word_atomics::relaxed)) return true;
    return false;
  }
  void unlock(agent& self) {
    std::uintptr_t expected = id(self);
    if (!word_.compare_exchange_strong(expected, 0, word_atomics::release, word_atomics::relaxed)) unlock_slow(self);
  }

  bool wait_for_turn(mutex_waiter& waiter, bool woken_before, timed timed = timed::no) {
    agent& self = *waiter.who;
    for (bool again = woken_before;; again = true) {
      bool mine = mutant == mutation::hand_over_unguarded && int(waiter.handed_over($));
      guard_.lock();
      if (mutant != mutation::hand_over_unguarded) mine = int(waiter.handed_over($));
      if (mine || take_or_mark(id(self))) {
        guard_.unlock();
        return true;
      }
      RL_ASSERT(!waiter.linked());
      if (again) {
        waiter.passed_over = true;
        queue_.push_front(waiter);
      } else {
        queue_.push(waiter);
      }
      if (self.suspend(&guard_, cancellable::no, timed) != wake_reason::notified) {
        if (mutant != mutation::left_linked) forget(waiter);
        return false;
      }
    }
  }
  void forget(mutex_waiter& waiter) {
    guard_.lock();
    queue_.remove(waiter);
    guard_.unlock();
  }

  // Whoever has unlocked it last may destroy it: a race if somebody touches it meanwhile.
  void destroy() { alive_($) = 0; }
  void touch() { (void)int(alive_($)); }

  void admit(ulexite::detail::intrusive_list<mutex_waiter>& notified, agent*& wake) {
    guard_.lock();
    const std::uintptr_t word = mutant == mutation::marked_late ? word_.load(word_atomics::relaxed)
                                                                : word_.fetch_or(contended, word_atomics::relaxed);
    bool owned = (word & ~contended) != 0;
    while (mutex_waiter* const next = notified.pop_front()) {
      if (owned) {
        next->sent_to_mutex($) = 1;
        queue_.push(*next);
        continue;
      }
      agent& who = *next->who;
      const claim_result result = who.word.claim(wake_reason::notified);
      if (result == claim_result::won) wake = &who;
      owned = result != claim_result::lost;
    }
    if (mutant == mutation::marked_late) word_.fetch_or(contended, word_atomics::relaxed);
    guard_.unlock();
  }

 private:
  static constexpr std::uintptr_t contended = 1;

  static std::uintptr_t id(const agent& self) { return reinterpret_cast<std::uintptr_t>(&self); }

  bool take_free(agent& self) {
    std::uintptr_t expected = 0;
    return word_.compare_exchange_strong(expected, id(self), word_atomics::acquire, word_atomics::relaxed);
  }
  bool take_or_mark(std::uintptr_t self) {
    std::uintptr_t word = word_.load(word_atomics::relaxed);
    for (;;) {
      const bool free = (word & ~contended) == 0;
      const std::uintptr_t next = free ? word | self : word | contended;
      if (word_.compare_exchange_weak(word, next, word_atomics::acquire, word_atomics::relaxed)) return free;
    }
  }
  bool spin(agent& self) {
    for (int look = 0; look < 2; ++look) {
      const std::uintptr_t word = word_.load(word_atomics::relaxed);
      if (word & contended) return false;
      if (word == 0) {
        if (take_free(self)) return true;
      } else if (rl::rand(2)) {  // its owner does not run
        return false;
      }
    }
    return false;
  }
  bool lock_slow(agent& self, mutex_waiter& waiter, timed timed) {
    if (spin(self)) return true;
    waiter.begin(self);
    return wait_for_turn(waiter, false, timed);
  }

  void unlock_slow(agent& self) {
    RL_ASSERT((word_.load(word_atomics::relaxed) & ~contended) == id(self));
    agent* wake = nullptr;
    for (;;) {
      bool woken = mutant == mutation::queue_forgotten, given = false;
      guard_.lock();
      const auto next = mutant == mutation::queue_forgotten ? fibers::claimed_wait() : queue_.claim_oldest();
      if (queue_.empty()) word_.fetch_and(~contended, word_atomics::relaxed);
      if (next) {
        woken = next.who != nullptr || mutant == mutation::awake_counted;
        wake = next.who;
        auto& waiter = static_cast<mutex_waiter&>(*next.node);
        if (rl::rand(2)) {  // by the clock, or for it has been passed over too often
          waiter.handed_over($) = 1;
          given = give_to(id(*waiter.who), true);
        }
      }
      if (mutant == mutation::given_up_early && !given) given = give_to(0, woken);
      guard_.unlock();
      if (!given || mutant == mutation::given_up_early) touch();  // one to whom it was given waits for the guard
      if (given || give_to(0, woken)) break;
    }
    if (wake) wake->resume();
  }

  bool give_to(std::uintptr_t next, bool woken) {
    std::uintptr_t word = word_.load(word_atomics::relaxed);
    do {
      if (!woken && (word & contended)) return false;
    } while (!word_.compare_exchange_weak(word, next | (mutant == mutation::mark_forgotten ? 0 : word & contended),
                                          word_atomics::release, word_atomics::relaxed));
    return true;
  }

  rl::var<int> alive_;
  word_atomics::atomic<std::uintptr_t> word_{0};
  fibers::spin_lock guard_;
  fibers::wait_queue queue_;
};

// ---- the condition variable ----

enum class cv_status { no_timeout, timeout, cancelled };

class condition_variable {
 public:
  void notify(bool all) {
    agent* wake = nullptr;
    ulexite::detail::intrusive_list<mutex_waiter> notified;
    guard_.lock();
    while (auto* const next = static_cast<mutex_waiter*>(queue_.pop())) {
      next->notified($) = 1;
      notified.push_back(*next);
      if (!all) break;
    }
    if (!notified.empty()) of->admit(notified, wake);
    guard_.unlock();
    if (wake) wake->resume();
  }

  // The mutex held.
  cv_status wait(agent& self, mutex_waiter& node, mutex_waiter& relock, timed timed, cancellable cancellable) {
    if (cancellable == cancellable::yes && self.word.stop_requested()) return cv_status::cancelled;
    node.begin(self);
    if (mutant != mutation::wait_not_prepared) self.word.prepare();
    guard_.lock();
    queue_.push(node);
    guard_.unlock();
    of->unlock(self);
    if (mutant == mutation::wait_not_prepared) self.word.prepare();
    const auto reason = self.suspend(nullptr, cancellable, timed);
    if (reason == wake_reason::notified) {
      of->wait_for_turn(node, int(node.sent_to_mutex($)));
      return cv_status::no_timeout;
    }
    guard_.lock();
    if (!int(node.notified($))) queue_.remove(node);
    guard_.unlock();
    if (int(node.sent_to_mutex($))) of->forget(node);
    of->lock(self, relock);
    if (int(node.notified($)) && mutant != mutation::notification_lost) return cv_status::no_timeout;
    return reason == wake_reason::cancelled ? cv_status::cancelled : cv_status::timeout;
  }

  mutex* of = nullptr;

 private:
  fibers::spin_lock guard_;
  fibers::wait_queue queue_;
};

// ---- tests ----

// A fiber, with the nodes of its waits.
struct locker {
  agent self;
  mutex_waiter nodes[8];
  int used = 0;

  mutex_waiter& node() { return nodes[used++ % 8]; }
};

// What the mutex guards.
struct guarded {
  rl::var<int> count;
  int inside = 0, entries = 0;

  guarded() { count($) = 0; }
  void use() {
    RL_ASSERT(++inside == 1);
    count($) = int(count($)) + 1;
    ++entries;
    --inside;
  }
};

// Three lock, now and then with a time limit, or only if they need not wait.
struct one_owner_at_a_time : rl::test_suite<one_owner_at_a_time, 4> {
  mutex m;
  locker lockers[3];
  guarded data;
  bool is_timed = false;
  int left = 0;

  void before() { is_timed = rl::rand(2); }
  void thread(unsigned id) {
    if (id == 3) {
      if (is_timed) lockers[0].self.fire();
      return;
    }
    locker& by = lockers[id];
    for (int round = 0; round < 2; ++round) {
      bool locked = true;
      if (id == 0 && is_timed) {
        locked = m.lock_for(by.self, by.node());
      } else if (id == 1 && round == 1) {
        locked = m.try_lock(by.self);
      } else {
        m.lock(by.self, by.node());
      }
      if (!locked) continue;
      data.use();
      m.unlock(by.self);
    }
    m.lock(by.self, by.node());
    data.use();
    const bool last = ++left == 3;
    m.unlock(by.self);
    if (last) m.destroy();
    by.self.finish();
  }
  void after() {
    RL_ASSERT(int(data.count($)) == data.entries);
    RL_ASSERT(data.entries >= 7);
  }
};

// One item for two who wait, one of them with a time limit, or to be cancelled. Who takes it brings the next, which is
// the last.
struct no_notification_is_lost : rl::test_suite<no_notification_is_lost, 4> {
  mutex m;
  condition_variable changed;
  locker lockers[3];
  guarded data;
  rl::var<int> items;
  bool is_timed = false, stops = false, all = false, under_lock = false;
  int taken = 0;

  void before() {
    changed.of = &m;
    items($) = 0;
    is_timed = rl::rand(2);
    stops = rl::rand(2);
    all = rl::rand(2);
    under_lock = rl::rand(2);
  }
  void thread(unsigned id) {
    if (id == 3) {
      if (stops) {
        lockers[0].self.stop();
      } else if (is_timed) {
        lockers[0].self.fire();
      }
      return;
    }
    locker& by = lockers[id];
    if (id == 2) {
      bring(by);
    } else if (take(by, id == 0) && taken == 1) {
      bring(by);
    }
    by.self.finish();
  }
  // False if the waiting was over first.
  bool take(locker& by, bool bounded) {
    m.lock(by.self, by.node());
    data.use();
    bool there = int(items($)) > 0;
    while (!there) {
      const bool may_end = bounded && (is_timed || stops);
      const cv_status how = changed.wait(by.self, by.node(), by.node(), bounded && is_timed ? timed::yes : timed::no,
                                         may_end ? cancellable::yes : cancellable::no);
      data.use();
      there = int(items($)) > 0;
      if (how == cv_status::no_timeout) continue;
      RL_ASSERT(may_end);
      if (how == cv_status::cancelled) there = false;
      break;
    }
    if (there) {
      items($) = int(items($)) - 1;
      ++taken;
    }
    m.unlock(by.self);
    return there;
  }
  void bring(locker& by) {
    m.lock(by.self, by.node());
    data.use();
    items($) = int(items($)) + 1;
    if (under_lock) changed.notify(all);
    m.unlock(by.self);
    if (!under_lock) changed.notify(all);
  }
  void after() { RL_ASSERT(int(data.count($)) == data.entries); }
};

// All are told of one thing, while another uses the mutex.
struct all_are_admitted : rl::test_suite<all_are_admitted, 4> {
  mutex m;
  condition_variable changed;
  locker lockers[4];
  guarded data;
  rl::var<int> ready;

  void before() {
    changed.of = &m;
    ready($) = 0;
  }
  void thread(unsigned id) {
    locker& by = lockers[id];
    m.lock(by.self, by.node());
    data.use();
    if (id < 2)
      while (!int(ready($))) {
        changed.wait(by.self, by.node(), by.node(), timed::no, cancellable::no);
        data.use();
      }
    if (id == 2) ready($) = 1;
    m.unlock(by.self);
    if (id == 2) changed.notify(true);
  }
  void after() { RL_ASSERT(int(data.count($)) == data.entries); }
};

int main() {
  constexpr unsigned interleavings = 300'000;
  const bool all = model::holds<one_owner_at_a_time>(interleavings) &&
                   model::holds<no_notification_is_lost>(interleavings) &&
                   model::holds<all_are_admitted>(interleavings);
  return all ? 0 : 1;
}
