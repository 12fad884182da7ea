#pragma once

#include <ulexite/base/error.hpp>
#include <ulexite/sync/mutex.hpp>

#include <cstddef>

namespace ulexite {

// A mutex that its holder may lock again. It is free after as many unlocks. Otherwise as mutex.
class recursive_mutex {
 public:
  recursive_mutex() = default;
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;

  // Waits until the caller holds the mutex. Not a cancellation point.
  void lock() {
    if (!mine()) mutex_.lock();
    ++depth_;
  }

  // Takes the mutex if it is free or the caller holds it. Never waits.
  [[nodiscard]] bool try_lock() noexcept {
    if (!mine() && !mutex_.try_lock()) return false;
    ++depth_;
    return true;
  }

  // Undoes one lock. Never waits. Throws usage_error if the caller does not hold the mutex.
  void unlock() {
    if (!mine()) throw usage_error("recursive_mutex::unlock by another than its owner");
    if (--depth_ == 0) mutex_.unlock();
  }

 private:
  [[nodiscard]] bool mine() const noexcept { return mutex_.held_by(detail::this_agent()); }

  mutex mutex_;
  std::size_t depth_ = 0;  // the holder's locks
};

}  // namespace ulexite
