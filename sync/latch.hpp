#pragma once

// A count that falls to zero once, with std::latch's interface.

#include <ulexite/sync/event.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ulexite {

namespace detail {
struct coroutine_access;
}

// A count that falls to zero once; then all waits return. Any number of fibers and plain threads may use it at the same
// time. It may be destroyed as soon as the last wait has returned, even if the count_down() that ended the wait has not
// returned yet.
class latch {
 public:
  // Makes a latch with a count. Throws usage_error if `count` is negative.
  constexpr explicit latch(std::ptrdiff_t count) : count_(count), open_(count == 0) {
    if (count < 0) refuse(count);
  }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  // The largest count.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return PTRDIFF_MAX; }

  // Lowers the count by `n`. Never waits. Throws usage_error, with the count unchanged, if `n` is negative or more than
  // the count.
  void count_down(std::ptrdiff_t n = 1);
  // Whether the count is zero. Never waits. If true, the latch must not be destroyed yet: only the return of a wait
  // permits that.
  [[nodiscard]] bool try_wait() const noexcept { return open_.is_set(); }
  // Waits until the count is zero. A cancellation point: throws operation_cancelled.
  void wait() const { open_.wait_until_ns(detail::no_deadline, detail::wait_kind::latch); }
  // Waits as wait(), at most for `time`, or until `time`. Returns false if the time passed first.
  [[nodiscard]] bool wait_for(relative_timeout time) const {
    return open_.wait_until_ns(time.deadline(), detail::wait_kind::latch);
  }
  [[nodiscard]] bool wait_until(absolute_timeout time) const {
    return open_.wait_until_ns(time.deadline(), detail::wait_kind::latch);
  }
  // Calls count_down(n), then wait(). Throws as both; if it throws operation_cancelled, it has counted down.
  void arrive_and_wait(std::ptrdiff_t n = 1) {
    count_down(n);
    wait();
  }

 private:
  friend struct detail::coroutine_access;
  [[noreturn]] static void refuse(std::ptrdiff_t count);

  // State
  //   count_   the remaining count. Lowered by count_down, never raised.
  //
  // Pairings
  //   A  each count_down changes count_, acq_rel  ->  the last count_down changes it to zero, acq_rel, and sets open_
  //      (event.hpp A). A waiter sees all writes before each count_down.
  std::atomic<std::ptrdiff_t> count_;
  mutable event open_;  // set once the count is zero
};

}  // namespace ulexite
