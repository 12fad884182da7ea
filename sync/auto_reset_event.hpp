#pragma once

#include <ulexite/sync/semaphore.hpp>

#include <chrono>
#include <concepts>

namespace ulexite {

// A flag that lets one wait pass for each set(), and is then reset; tokio calls it Notify. Without a waiter it keeps
// one set(), not more. Waits pass in their order. Any number of fibers and plain threads may use it at the same time.
// It may be destroyed as soon as the last wait has returned, even if the set() that ended the wait has not returned
// yet.
class auto_reset_event {
 public:
  // Makes an event that is not set.
  constexpr auto_reset_event() : core_(0, 1) {}
  // Makes an event that is set or not. It takes a bool only, because a pointer would convert to true.
  template <std::same_as<bool> B>
  constexpr explicit auto_reset_event(B set) : core_(set ? 1 : 0, 1) {}
  auto_reset_event(const auto_reset_event&) = delete;
  auto_reset_event& operator=(const auto_reset_event&) = delete;

  // Ends the oldest wait. Without a waiter, lets the next wait pass. No effect if the event is set already. Never
  // waits.
  void set() noexcept { core_.release_one_of(1); }
  // Revokes a set() that no wait has taken. Never waits.
  void reset() noexcept { static_cast<void>(try_wait()); }

  // Waits for a set(), and takes it. A cancellation point: throws operation_cancelled, and takes nothing then.
  void wait() { core_.acquire(1, 1, detail::no_deadline, detail::wait_kind::auto_reset_event); }
  // Takes a set() if there is one. Never waits; not a cancellation point.
  [[nodiscard]] bool try_wait() noexcept { return core_.try_acquire(); }
  // Waits as wait(), at most for `time`, or until `time`. Returns false if the time passed first.
  [[nodiscard]] bool wait_for(relative_timeout time) {
    return core_.acquire(1, 1, time.deadline(), detail::wait_kind::auto_reset_event);
  }
  [[nodiscard]] bool wait_until(absolute_timeout time) {
    return core_.acquire(1, 1, time.deadline(), detail::wait_kind::auto_reset_event);
  }

 private:
  friend detail::acquire_case;

  detail::semaphore_core core_;
};

}  // namespace ulexite
