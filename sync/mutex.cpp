// The word of a mutex. `owner` is the address of the owner's agent; waiters: some are, or may be, in the queue.
//
//   word                 the mutex is    next
//   0                    free            lock, try_lock -> held
//   owner                held            unlock -> free. A caller that must wait -> held, waiters
//   owner | waiters_bit  held, waiters   unlock hands over -> held, waiters; or wakes the oldest -> free, waiters
//   waiters_bit          free, waiters   lock, try_lock -> held, waiters. The woken waiter, or another caller
//
// A notification of a condition variable sets the bit, whether the mutex is free or held. An unlock that finds no
// further waiter clears it. Both hold guard_.

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/object_name.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/sync/mutex.hpp>

#include <mutex>

namespace ulexite {
namespace {

constexpr int looks = 4;                      // at an owner that runs, before the caller goes to sleep
constexpr int pauses_per_look = 30;           // rare reads, because each takes the word from the owner's cache
constexpr std::int64_t patience = 1'000'000;  // ns
constexpr unsigned most_overtakes = 30;

// The budget is spent, so the fiber yields before it takes the mutex. A deterministic run gives it a budget of one, and
// asks at the end of the operation.
void end_round(detail::agent& self) noexcept {
  if (detail::controlled())
    self.budget = 1;
  else
    detail::yield_if_budget_spent(self);
}

}  // namespace

bool mutex::try_lock() noexcept {
  const detail::yield_point at_exit;
  detail::agent& self = detail::this_agent();
  std::uintptr_t word = word_.load(std::memory_order_relaxed);  // hint: the exchange decides
  while ((word & ~waiters_bit) == 0) {
    if (!word_.compare_exchange_weak(word, word | id(self), std::memory_order_acquire, std::memory_order_relaxed))  // A
      continue;
    ++self.held_locks;
    return true;
  }
  return false;
}

// While the owner runs on another worker, it will probably unlock soon.
bool mutex::spin(detail::agent& self) noexcept {
  for (int look = 0; look < looks; ++look) {
    const std::uintptr_t word = word_.load(std::memory_order_relaxed);  // hint: the exchange decides
    if (word & waiters_bit) return false;
    if (word == 0) {
      if (take_free(self)) return true;
    } else if (!detail::runs_on_a_worker(reinterpret_cast<const detail::agent*>(word))) {
      return false;
    }
    for (int i = 0; i < pauses_per_look; ++i) detail::cpu_relax();
  }
  return false;
}

// If it does not take the mutex, its owner's unlock will check the queue. Guard held.
bool mutex::take_or_set_waiters_bit(std::uintptr_t self) noexcept {
  std::uintptr_t word = word_.load(std::memory_order_relaxed);  // hint: the exchange decides
  for (;;) {
    const bool free = (word & ~waiters_bit) == 0;
    const std::uintptr_t next = free ? word | self : word | waiters_bit;
    if (word_.compare_exchange_weak(word, next, std::memory_order_acquire, std::memory_order_relaxed))  // A
      return free;
  }
}

bool mutex::lock_until(std::int64_t deadline, detail::cancellable how) {
  detail::agent& self = detail::this_agent();
  return (--self.budget > 0 && take_free(self)) || lock_slow(self, deadline, how);
}

std::unique_lock<mutex> detail::acquire(mutex& of, std::error_code& error) {
  agent& self = this_agent();
  spend_budget(self);  // before the lock, because its holder does not yield
  error = stop_cause(self);
  if (!error && of.lock_until(no_deadline, cancellable::yes)) return {of, std::adopt_lock};
  if (!error) error = stop_cause(self);
  return {};
}

bool mutex::lock_slow(detail::agent& self, std::int64_t deadline, detail::cancellable how) {
  if (held_by(self)) throw usage_error("mutex::lock by its owner: " + detail::name_and_address(this));
  const detail::yield_point at_exit;
  if (self.budget == 0) end_round(self);
  if (spin(self)) {
    if (detail::controlled()) set_waiters_bit();
    return true;
  }
  detail::check_may_wait(self, detail::wait_kind::mutex);
  detail::mutex_waiter waiter(self);
  return wait_for_turn(waiter, false, deadline, how);
}

// False if the deadline was over first, or the caller must stop. A waiter that leaves then has left waiters_bit set,
// so the owner wakes the next.
bool mutex::wait_for_turn(detail::mutex_waiter& waiter, bool woken_before, std::int64_t deadline,
                          detail::cancellable how) {
  for (bool again = woken_before; !take_turn_or_queue(waiter, again); again = true)
    if (detail::suspend_and_unlock(*waiter.who, guard_, waiting(how), deadline) != detail::wake_reason::notified) {
      unlink(waiter);
      return false;
    }
  return true;
}

// The last owner's writes to the waiter are read with the guard held. The reason: a condition variable may move a
// waiter here that is not yet asleep, and then it can be claimed.
bool mutex::take_turn_or_queue(detail::mutex_waiter& waiter, bool woken_before) noexcept {
  guard_.lock();
  if (waiter.handed_over || take_or_set_waiters_bit(id(*waiter.who))) {
    guard_.unlock();
    if (detail::controlled()) set_waiters_bit();
    ++waiter.who->held_locks;
    return true;
  }
  if (woken_before) {
    ++waiter.overtaken;
    queue_.push_front(waiter);
  } else {
    waiter.since = detail::now_ns();
    queue_.push(waiter);
  }
  return false;
}

// In a deterministic run the unlock takes the long way too, because it asks there.
void mutex::set_waiters_bit() noexcept {
  const std::lock_guard lock(guard_);
  word_.fetch_or(waiters_bit, std::memory_order_relaxed);  // the owner's
}

void mutex::unlink(detail::mutex_waiter& waiter) noexcept {
  const std::lock_guard lock(guard_);
  detail::wait_queue::remove(waiter);
}

// The next owner may destroy the mutex immediately. So unless the next is a waiter that takes the guard first, the word
// is released as the last step, with the guard free. If a waiter has entered the queue before that, the loop repeats.
void mutex::unlock_slow(detail::agent& self) {
  const detail::yield_point at_exit;
  if (!held_by(self)) throw usage_error("mutex::unlock by another than its owner: " + detail::name_and_address(this));
  --self.held_locks;
  detail::deferred_resume wake(detail::this_caller().worker);
  for (;;) {
    bool woken = false;
    {
      const std::lock_guard lock(guard_);
      const detail::claimed_wait next = queue_.claim_oldest();
      if (queue_.empty()) word_.fetch_and(~waiters_bit, std::memory_order_relaxed);  // the owner's
      if (next) {
        // A waiter that is awake already may enter the queue again before the word is released.
        woken = next.who != nullptr;
        wake.who = next.who;
        auto& waiter = static_cast<detail::mutex_waiter&>(*next.node);
        waiter.handed_over = waiter.overtaken >= most_overtakes || detail::now_ns() - waiter.since > patience;
        wake.holds = waiter.handed_over;
        if (waiter.handed_over) return (void)release_to(id(*waiter.who), true);
      }
    }
    if (release_to(0, woken)) return;
  }
}

// Changes the owner, 0 for none, and keeps waiters_bit. False, and nothing done, if it is set and the caller has woken
// no waiter.
bool mutex::release_to(std::uintptr_t next, bool woken) noexcept {
  std::uintptr_t word = word_.load(std::memory_order_relaxed);  // the exchange decides
  do {
    if (!woken && (word & waiters_bit)) return false;
  } while (!word_.compare_exchange_weak(word, next | (word & waiters_bit), std::memory_order_release,  // A
                                        std::memory_order_relaxed));  // the exchange decides
  return true;
}

// Takes over waiters that a condition variable has notified: all queue here, but if the mutex is free the first is
// woken for it. The check and the bit are one exchange: an owner that unlocked in between would not check the queue.
void mutex::requeue_from_condvar(detail::intrusive_list<detail::mutex_waiter>& notified,
                                 detail::agent*& wake) noexcept {
  const std::lock_guard lock(guard_);
  const std::uintptr_t word = word_.fetch_or(waiters_bit, std::memory_order_relaxed);  // lock and unlock pair up
  bool owned = (word & ~waiters_bit) != 0;
  while (detail::mutex_waiter* const next = notified.pop_front()) {
    if (owned) {
      next->requeued = true;
      next->since = detail::now_ns();
      queue_.push(*next);
      continue;
    }
    detail::agent& who = *next->who;  // a waiter that is awake may destroy its node
    const detail::claim_result result = who.word.claim(detail::wake_reason::notified);
    if (result == detail::claim_result::won) wake = &who;
    owned = result != detail::claim_result::lost;
  }
}

}  // namespace ulexite
