#pragma once

#include <ulexite/sync/mutex.hpp>

#include <chrono>

namespace ulexite {

// A mutex whose waits may have a time limit. Otherwise as mutex.
class timed_mutex : private mutex {
 public:
  timed_mutex() = default;

  using mutex::lock;
  using mutex::try_lock;
  using mutex::unlock;

  // Wait for the mutex, at most for `time`, or until `time`. Return whether the caller has got it. Not cancellation
  // points. Throw usage_error if the caller holds it already.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> time) {
    return lock_until(detail::deadline_after(time));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> time) {
    return lock_until(detail::deadline_at(time));
  }
};

}  // namespace ulexite
