#pragma once

// Counting semaphores, with std's interface.
//
// Invariant, under the lock: the oldest waiter wants more permits than there are.
//
// Checked by tests/model/semaphore_model.cpp.

#include <ulexite/sync/wait/wait_queue.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace ulexite {

namespace detail {

class acquire_case;

// The part that does not depend on the type. `max` is the largest number of permits.
class semaphore_core {
 public:
  constexpr semaphore_core(std::ptrdiff_t permits, std::ptrdiff_t max) : permits_(permits) {
    if (permits < 0 || permits > max) refuse(permits, max);
  }
  [[noreturn]] static void refuse(std::ptrdiff_t permits, std::ptrdiff_t max);

  [[nodiscard]] bool try_acquire() noexcept;
  [[nodiscard]] bool try_acquire(std::ptrdiff_t n, std::ptrdiff_t max);
  bool acquire(std::ptrdiff_t n, std::ptrdiff_t max, std::int64_t deadline, wait_kind kind = wait_kind::semaphore);
  void release(std::ptrdiff_t n, std::ptrdiff_t max);
  // Gives a permit back unless there are `max`. Never waits.
  void release_one_of(std::ptrdiff_t max) noexcept;

 private:
  friend acquire_case;

  // With guard_ held, all three.
  [[nodiscard]] bool take(std::ptrdiff_t n) noexcept;
  void add_waiter(wait_node& node, std::ptrdiff_t n) noexcept;
  void serve_oldest(intrusive_list<wait_node>& woken) noexcept;

  spin_lock guard_;  // guards the rest
  std::ptrdiff_t permits_;
  wait_queue queue_;
};

}  // namespace detail

// Permits that fibers and threads acquire and release, in the order of the requests. A release gives its permits to the
// oldest waiters; no later caller can take them first. So a waiter for many permits holds up those behind it. Any
// number of fibers and plain threads may use it at the same time. A caller may release permits that another acquired.
// It may be destroyed as soon as the last acquire has returned, even if the release that ended the wait has not
// returned yet.
//
// A permit is never lost: an acquire that throws or times out has taken none.
template <std::ptrdiff_t Max = PTRDIFF_MAX>
class counting_semaphore {
  static_assert(Max >= 0);

 public:
  // Throws usage_error if `permits` is negative or more than Max.
  constexpr explicit counting_semaphore(std::ptrdiff_t permits) : core_(permits, Max) {}
  counting_semaphore(const counting_semaphore&) = delete;
  counting_semaphore& operator=(const counting_semaphore&) = delete;

  // The most permits that it can hold.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return Max; }

  // Gives `n` permits back. Never waits. Throws usage_error, with nothing given back, if `n` is negative or there would
  // be more than Max.
  void release(std::ptrdiff_t n = 1) { core_.release(n, Max); }

  // Takes `n` permits together. Waits until there are `n` permits and no older waiter; not for 0. A cancellation point:
  // throws operation_cancelled. Throws usage_error if `n` is negative or more than Max.
  void acquire(std::ptrdiff_t n = 1) { core_.acquire(n, Max, detail::no_deadline); }
  // Takes a permit, or `n` permits together, if there are enough and no waiter; 0 always. Never waits; not a
  // cancellation point. Throws usage_error as acquire does.
  [[nodiscard]] bool try_acquire() noexcept { return core_.try_acquire(); }
  [[nodiscard]] bool try_acquire(std::ptrdiff_t n) { return core_.try_acquire(n, Max); }
  // As acquire(n), at most for `time`, or until `time`. Returns false if the time passed first.
  [[nodiscard]] bool try_acquire_for(relative_timeout time, std::ptrdiff_t n = 1) {
    return core_.acquire(n, Max, time.deadline());
  }
  [[nodiscard]] bool try_acquire_until(absolute_timeout time, std::ptrdiff_t n = 1) {
    return core_.acquire(n, Max, time.deadline());
  }

 private:
  friend detail::acquire_case;

  detail::semaphore_core core_;
};

// A semaphore with at most one permit.
using binary_semaphore = counting_semaphore<1>;

// Owns permits of a semaphore, and releases them at its end, as std::unique_lock does with a lock. Movable. One fiber
// or thread at a time may use it. Any of them may release, not only the one that acquired.
//
//   counting_semaphore<> slots(8);
//   const semaphore_permit one(slots);
template <std::ptrdiff_t Max>
class semaphore_permit {
 public:
  // Owns nothing.
  semaphore_permit() noexcept = default;
  // Acquires `n` permits. Waits and throws like acquire.
  [[nodiscard]] explicit semaphore_permit(counting_semaphore<Max>& of, std::ptrdiff_t n = 1) : of_(&of), count_(n) {
    of.acquire(n);
  }
  // Tries to acquire `n` permits; owns nothing if that would wait. Throws like try_acquire.
  [[nodiscard]] semaphore_permit(counting_semaphore<Max>& of, std::try_to_lock_t, std::ptrdiff_t n = 1) {
    if (of.try_acquire(n)) *this = semaphore_permit(of, std::adopt_lock, n);
  }
  // Owns `n` permits that the caller has acquired. Throws usage_error if `n` is negative or more than Max.
  [[nodiscard]] semaphore_permit(counting_semaphore<Max>& of, std::adopt_lock_t, std::ptrdiff_t n = 1)
      : of_(&of), count_(n) {
    if (n < 0 || n > Max) detail::semaphore_core::refuse(n, Max);
  }
  semaphore_permit(semaphore_permit&& other) noexcept
      : of_(std::exchange(other.of_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  semaphore_permit& operator=(semaphore_permit&& other) noexcept {
    if (this != &other) {
      release();
      of_ = std::exchange(other.of_, nullptr);
      count_ = std::exchange(other.count_, 0);
    }
    return *this;
  }
  ~semaphore_permit() { release(); }

  // Whether it owns permits: at least one.
  [[nodiscard]] explicit operator bool() const noexcept { return count_ > 0; }
  // How many permits it owns.
  [[nodiscard]] std::ptrdiff_t count() const noexcept { return count_; }

  // Gives the permits back now. Never waits. It owns nothing then. This and the destructor end the process if there
  // would be more than Max. std::unique_lock::release is another thing: it keeps the lock locked, as forget() keeps the
  // permits.
  void release() noexcept {
    if (of_) std::exchange(of_, nullptr)->release(std::exchange(count_, 0));
  }
  // Owns nothing from now on, and gives nothing back: the permits are the caller's to release. How many.
  std::ptrdiff_t forget() noexcept {
    of_ = nullptr;
    return std::exchange(count_, 0);
  }

 private:
  counting_semaphore<Max>* of_ = nullptr;
  std::ptrdiff_t count_ = 0;
};

}  // namespace ulexite
