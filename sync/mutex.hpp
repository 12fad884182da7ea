#pragma once

// A mutex for fibers and plain threads: a waiting fiber leaves its worker to others.
//
// State
//   word_   the owner's agent, or 0, plus contended_bit while somebody is (or may be) in the queue. Changed by exchange
//           only; contended_bit only with guard_ held.
//
// Pairings
//   A  unlock changes word_, release  ->  lock changes it, acquire: the next owner sees all that the last one wrote. A
//      hand-over counts as both, through guard_.

#include <ulexite/sync/wait_queue.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite {

// Not recursive, and checked: locking what one holds already, or unlocking what one does not hold, throws usage_error
// and changes nothing. It may be used with std::lock_guard, std::unique_lock, std::scoped_lock.
//
// Whoever comes while it is free gets it, even past fibers that wait; but one that has been passed over for a
// millisecond gets it by hand-over.
class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  // Waits until the mutex is the caller's. Not a cancellation point.
  void lock() {
    detail::agent& self = detail::this_agent();
    std::uintptr_t expected = 0;
    if (!word_.compare_exchange_strong(expected, id(self), std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]]  // A
      lock_slow(self);
  }

  // Takes the mutex if it is free. Never waits. False if the caller holds it already.
  [[nodiscard]] bool try_lock() noexcept;

  // Gives the mutex up. Never waits.
  void unlock() {
    detail::agent& self = detail::this_agent();
    std::uintptr_t expected = id(self);
    if (!word_.compare_exchange_strong(expected, 0, std::memory_order_release, std::memory_order_relaxed))  // A
        [[unlikely]]
      unlock_slow(self);
  }

 private:
  friend class condition_variable;

  static constexpr std::uintptr_t contended_bit = 1;

  struct waiter;

  static std::uintptr_t id(detail::agent& agent) noexcept { return reinterpret_cast<std::uintptr_t>(&agent); }
  [[nodiscard]] bool held_by(detail::agent& agent) const noexcept {
    return (word_.load(std::memory_order_relaxed) & ~contended_bit) ==
           id(agent);  // only the caller could have put itself
  }

  void lock_slow(detail::agent& self);
  void unlock_slow(detail::agent& self);
  [[nodiscard]] bool spin(std::uintptr_t self) noexcept;
  [[nodiscard]] bool take_or_mark(std::uintptr_t self) noexcept;

  std::atomic<std::uintptr_t> word_{0};
  detail::spin_lock guard_;  // guards queue_
  detail::wait_queue queue_;
};

}  // namespace ulexite
