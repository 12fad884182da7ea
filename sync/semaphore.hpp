#pragma once

// Counting semaphores, with std's interface.
//
// Invariant, under the lock: somebody waits  implies  there is no permit.

#include <ulexite/sync/wait/wait_queue.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ulexite {

namespace detail {

// What does not depend on the most permits that there may be, `max`.
class semaphore_core {
 public:
  semaphore_core(std::ptrdiff_t permits, std::ptrdiff_t max);

  [[nodiscard]] bool try_acquire() noexcept;
  bool acquire(std::int64_t deadline);
  void release(std::ptrdiff_t n, std::ptrdiff_t max);

 private:
  spin_lock guard_;  // guards the rest
  std::ptrdiff_t permits_;
  wait_queue queue_;
};

}  // namespace detail

// Permits that fibers and threads acquire and release, in the order of the requests: a release gives its permits to the
// oldest waiters, and no later caller can take them first. Any number of fibers and plain threads may use it at the
// same time. A caller may release permits that another acquired. It may be destroyed as soon as the last acquire has
// returned, even if the release that ended the wait has not returned yet.
//
// A permit is never lost: an acquire that throws or times out has taken none.
template <std::ptrdiff_t Max = PTRDIFF_MAX>
class counting_semaphore {
  static_assert(Max >= 0);

 public:
  // Throws usage_error if `permits` is negative or more than Max.
  explicit counting_semaphore(std::ptrdiff_t permits) : core_(permits, Max) {}
  counting_semaphore(const counting_semaphore&) = delete;
  counting_semaphore& operator=(const counting_semaphore&) = delete;

  // The most permits that it can hold.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return Max; }

  // Gives `n` permits back. Never waits. Throws usage_error, with nothing given back, if `n` is negative or there would
  // be more than Max.
  void release(std::ptrdiff_t n = 1) { core_.release(n, Max); }

  // Takes a permit; waits while there is none. A cancellation point: throws operation_cancelled.
  void acquire() { core_.acquire(detail::no_deadline); }
  // Takes a permit if there is one. Never waits; not a cancellation point.
  [[nodiscard]] bool try_acquire() noexcept { return core_.try_acquire(); }
  // Like acquire(), but for no longer than that: false if the time was over first.
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> time) {
    return core_.acquire(detail::deadline_after(time));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(std::chrono::time_point<Clock, Duration> time) {
    return core_.acquire(detail::deadline_at(time));
  }

 private:
  detail::semaphore_core core_;
};

// A semaphore with at most one permit.
using binary_semaphore = counting_semaphore<1>;

}  // namespace ulexite
