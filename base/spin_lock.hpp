#pragma once

// A lock for sections of a few instructions. It is never held over a blocking call. It may be held over a switch of
// fibers, and the successor then releases it (scheduler: publish after the switch). So it belongs to no thread.
//
// State
//   held_   true while a holder is inside. Written by lock, try_lock and unlock.
//
// Pairings
//   A  unlock stores false, release  ->  lock or try_lock exchanges, or is_free loads, acquire: the next holder sees
//      all writes of the last one.

#include <ulexite/base/atomics.hpp>

namespace ulexite::detail {

template <class Atomics = std_atomics>
class basic_spin_lock {
 public:
  basic_spin_lock() = default;
  basic_spin_lock(const basic_spin_lock&) = delete;
  basic_spin_lock& operator=(const basic_spin_lock&) = delete;

  void lock() noexcept {
    if (held_.exchange(true, Atomics::acquire)) lock_slow();  // A
  }
  [[nodiscard]] bool try_lock() noexcept { return !held_.exchange(true, Atomics::acquire); }  // A
  void unlock() noexcept { held_.store(false, Atomics::release); }                            // A

  // Whether there is no holder. If true, the caller sees all writes of the last one.
  [[nodiscard]] bool is_free() const noexcept { return !held_.load(Atomics::acquire); }  // A

  // For a lock that only the caller ever locks (biased_lock.hpp).
  void lock_alone() noexcept { held_.store(true, Atomics::relaxed); }  // published by the caller's fence
  // Waits for its holder without locking it.
  void wait_until_free() const noexcept {
    for (unsigned attempt = 0; !is_free(); ++attempt) Atomics::pause(attempt);
  }

 private:
  [[gnu::cold, gnu::noinline]] void lock_slow() noexcept {
    do {
      for (unsigned attempt = 0; held_.load(Atomics::relaxed); ++attempt) Atomics::pause(attempt);  // hint
    } while (held_.exchange(true, Atomics::acquire));  // A
  }

  typename Atomics::template atomic<bool> held_{false};
};

using spin_lock = basic_spin_lock<>;

}  // namespace ulexite::detail
