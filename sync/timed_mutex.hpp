#pragma once

#include <ulexite/sync/mutex.hpp>

#include <chrono>

namespace ulexite {

// A mutex with time limits for its waits. Otherwise as mutex.
class timed_mutex : private mutex {
 public:
  timed_mutex() = default;

  using mutex::lock;
  using mutex::try_lock;
  using mutex::unlock;

  // Wait for the mutex, at most for `time`, or until `time`. Return whether the caller has got it. Not cancellation
  // points. Throw usage_error if the caller holds it already.
  [[nodiscard]] bool try_lock_for(relative_timeout time) { return lock_until(time.deadline()); }
  [[nodiscard]] bool try_lock_until(absolute_timeout time) { return lock_until(time.deadline()); }
};

}  // namespace ulexite
