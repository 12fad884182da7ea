#pragma once

#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/sync/wait/mutex_waiter.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <system_error>

namespace ulexite {

class mutex;

namespace detail {
class condition_operation;
class lock_operation;

// Locks as a cancellation point, for functions with an error code: errc::cancelled or errc::deadline_exceeded. Owns
// nothing after an error.
std::unique_lock<mutex> acquire(mutex& of, std::error_code& error);
}  // namespace detail

// A mutex for fibers and plain threads: while a fiber waits for it, its worker runs other fibers. It works with
// std::lock_guard, std::unique_lock and std::scoped_lock. It is not recursive, and it is checked. If a caller locks it
// twice, or unlocks it without holding it, the call throws usage_error and changes nothing.
//
// Not fair: a new caller may overtake waiters. A waiter that was overtaken 30 times, or for a millisecond, is handed
// the mutex next. It then runs before fibers that only take turns. The last holder may destroy the mutex after the
// unlock.
//
// A fiber that ends while it holds a mutex fails with usage_error, if it has not failed already. The mutex stays
// locked.
class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  // Waits until the mutex is the caller's. May yield first, even if it is free. Not a cancellation point.
  void lock() {
    detail::agent& self = *detail::inlined_caller().agent;
    // Counted before it is the caller's, because a holder does not yield.
    if (--self.budget == 0 || !take_free(self)) [[unlikely]]
      lock_slow(self, detail::no_deadline);
  }

  // Takes the mutex if it is free. Never waits. False if the caller holds it already.
  [[nodiscard]] bool try_lock() noexcept;

  // Releases the mutex. Never waits.
  void unlock() {
    detail::agent& self = *detail::inlined_caller().agent;
    std::uintptr_t expected = id(self);
    if (!word_.compare_exchange_strong(expected, 0, std::memory_order_release, std::memory_order_relaxed))  // A
        [[unlikely]]
      return unlock_slow(self);
    --self.held_locks;
  }

 private:
  friend class condition_variable;
  friend class recursive_mutex;
  friend class timed_mutex;
  friend class detail::lock_operation;
  friend class detail::condition_operation;
  friend std::unique_lock<mutex> detail::acquire(mutex& of, std::error_code& error);

  static constexpr std::uintptr_t waiters_bit = 1;

  static std::uintptr_t id(const detail::agent& agent) noexcept { return reinterpret_cast<std::uintptr_t>(&agent); }
  [[nodiscard]] bool held_by(const detail::agent& agent) const noexcept {
    return (word_.load(std::memory_order_relaxed) & ~waiters_bit) ==
           id(agent);  // only the caller could have put itself
  }
  [[nodiscard]] bool take_free(detail::agent& self) noexcept {
    std::uintptr_t expected = 0;
    if (!word_.compare_exchange_strong(expected, id(self), std::memory_order_acquire,
                                       std::memory_order_relaxed))  // A
      return false;
    ++self.held_locks;
    return true;
  }

  // `how` says whether a request to stop ends the wait.
  bool lock_until(std::int64_t deadline, detail::cancellable how = detail::cancellable::no);
  bool lock_slow(detail::agent& self, std::int64_t deadline, detail::cancellable how = detail::cancellable::no);
  void set_waiters_bit() noexcept;
  void unlock_slow(detail::agent& self);
  [[nodiscard]] bool release_to(std::uintptr_t next, bool woken) noexcept;
  bool wait_for_turn(detail::mutex_waiter& waiter, bool woken_before, std::int64_t deadline = detail::no_deadline,
                     detail::cancellable how = detail::cancellable::no);
  // Whether the mutex is the waiter's now. If not, it is in the queue, and guard_ is held.
  [[nodiscard]] bool take_turn_or_queue(detail::mutex_waiter& waiter, bool woken_before) noexcept;
  [[nodiscard]] detail::wait_mode waiting(detail::cancellable how = detail::cancellable::no) const noexcept {
    return detail::waiting_for(detail::wait_kind::mutex, &word_, how);
  }
  void requeue_from_condvar(detail::intrusive_list<detail::mutex_waiter>& notified, detail::agent*& wake) noexcept;
  void unlink(detail::mutex_waiter& waiter) noexcept;
  [[nodiscard]] bool spin(detail::agent& self) noexcept;
  [[nodiscard]] bool take_or_set_waiters_bit(std::uintptr_t self) noexcept;

  // State
  //   word_   the owner's agent, or 0, plus waiters_bit while a waiter is (or may be) in the queue. Changed by
  //           exchange only. waiters_bit changes only with guard_ held.
  //
  // Invariant, with guard_ free: while a waiter is in the queue, waiters_bit is set, and one of two agents will check
  // the queue. It is the owner, in its unlock, or a waiter that was woken from the queue and locks by the slow path.
  //
  // Pairings
  //   A  unlock changes word_, release  ->  lock changes it, acquire: the next owner sees all writes of the last one. A
  //      hand-over counts as both, through guard_.
  //
  // Checked by tests/model/mutex_model.cpp.
  std::atomic<std::uintptr_t> word_{0};
  detail::spin_lock guard_;  // guards queue_
  detail::wait_queue queue_;
};

}  // namespace ulexite
