#pragma once

#include <ulexite/base/error.hpp>
#include <ulexite/sync/mutex.hpp>

#include <cstddef>

namespace ulexite {

// A mutex that its owner may lock again; it is free after as many unlocks. Otherwise like mutex.
class recursive_mutex {
 public:
  recursive_mutex() = default;
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;

  // Waits until the mutex is the caller's. Not a cancellation point.
  void lock() {
    if (!mine()) mutex_.lock();
    ++depth_;
  }

  // Takes the mutex if it is free or the caller's. Never waits.
  [[nodiscard]] bool try_lock() noexcept {
    if (!mine() && !mutex_.try_lock()) return false;
    ++depth_;
    return true;
  }

  // Takes one lock back. Never waits. Throws usage_error if the caller does not hold the mutex.
  void unlock() {
    if (!mine()) throw usage_error("recursive_mutex::unlock by another than its owner");
    if (--depth_ == 0) mutex_.unlock();
  }

 private:
  [[nodiscard]] bool mine() const noexcept { return mutex_.held_by(detail::this_agent()); }

  mutex mutex_;
  std::size_t depth_ = 0;  // the owner's
};

}  // namespace ulexite
