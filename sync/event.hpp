#pragma once

#include <ulexite/sync/wait/wait_queue.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>

namespace ulexite {

class isolated_context;
class latch;

namespace detail {
class blocking_call;
class event_case;
class future_state_base;
namespace c {
class end_of_fiber;
}
}  // namespace detail

// A flag that fibers and threads wait for; also called a manual reset event. While it is set, all waits return. Any
// number of fibers and plain threads may use it at the same time. It may be destroyed as soon as the last wait has
// returned, even if the set() that ended the wait has not returned yet.
class event {
 public:
  // Makes an event that is not set.
  constexpr event() noexcept : word_(0) {}
  // Makes an event that is set or not. It takes a bool only, because a pointer would convert to true.
  template <std::same_as<bool> B>
  constexpr explicit event(B set) noexcept : word_(set ? set_bit : 0) {}
  event(const event&) = delete;
  event& operator=(const event&) = delete;

  // Sets the event. Waits under way end, and later waits return immediately until the reset. Never waits.
  void set() noexcept;
  // Resets the event, so later waits wait. A wait that a set() has ended still returns. Never waits.
  void reset() noexcept { word_.fetch_and(static_cast<std::uint8_t>(~set_bit), std::memory_order_acquire); }  // A
  // Whether it is set. Never waits. If true, the event must not be destroyed yet: only the return of a wait permits
  // that.
  [[nodiscard]] bool is_set() const noexcept { return (word_.load(std::memory_order_acquire) & set_bit) != 0; }  // A

  // Waits until it is set. A cancellation point: throws operation_cancelled.
  void wait() { wait_until_ns(detail::no_deadline); }
  // Waits as wait(), at most for `time`, or until `time`. Returns false if the time passed first.
  [[nodiscard]] bool wait_for(relative_timeout time) { return wait_until_ns(time.deadline()); }
  [[nodiscard]] bool wait_until(absolute_timeout time) { return wait_until_ns(time.deadline()); }

 private:
  friend class detail::blocking_call;
  friend class detail::c::end_of_fiber;
  friend class detail::event_case;
  friend class detail::future_state_base;
  friend class isolated_context;
  friend class latch;

  static constexpr std::uint8_t set_bit = 1, waited_bit = 2;

  // `object`: the object that a dump names for the wait; null: the event.
  bool wait_until_ns(std::int64_t deadline, detail::wait_kind kind = detail::wait_kind::event,
                     const void* object = nullptr);
  // Returns how the wait ended. Neither throws nor spends the budget.
  detail::wake_reason wait_quietly(detail::agent& self, detail::cancellable cancellable, std::int64_t deadline,
                                   detail::wait_kind kind, const void* object = nullptr) noexcept;
  void set_and_wake() noexcept;
  // With guard_ held: whether it is set. If not, it cannot be set before the guard is released.
  [[nodiscard]] bool set_or_marked() noexcept;

  // State
  //   word_   set_bit while the event is set. waited_bit from the time when a waiter has entered the queue. While it is
  //           set, set() works with guard_ held. The next wait that finds the event set clears waited_bit, also with
  //           guard_ held. So set_bit alone means that the set() which wrote it has finished.
  //
  // Pairings
  //   A  set changes word_, release  ->  a wait or is_set that finds set_bit, and the reset that clears it, read it,
  //      acquire. They see all writes before the set. Therefore set() also writes an event that is set already.
  //
  // Checked by tests/model/event_model.cpp.
  std::atomic<std::uint8_t> word_;
  detail::spin_lock guard_;  // guards queue_
  detail::wait_queue queue_;
};

}  // namespace ulexite
