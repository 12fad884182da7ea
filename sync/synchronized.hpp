#pragma once

#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/shared_mutex.hpp>

#include <concepts>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <utility>

namespace ulexite {

// A value with the mutex that guards it. Fibers and plain threads may use it at the same time. All operations wait
// until they hold the mutex; none is a cancellation point. Inside with_lock they throw usage_error. Only copy() and
// exchange() need a copyable or movable T. With shared_mutex as Mutex, readers can share the value.
template <class T, class Mutex = mutex>
class synchronized {
  static constexpr bool shares = requires(Mutex& of) { of.lock_shared(); };
  using reading_lock = std::conditional_t<shares, std::shared_lock<Mutex>, std::unique_lock<Mutex>>;

 public:
  synchronized()
    requires std::is_default_constructible_v<T>
  = default;
  // Makes the value from `args`.
  template <class... Args>
    requires(sizeof...(Args) > 0 && std::is_constructible_v<T, Args...>)
  explicit synchronized(Args&&... args) : value_(std::forward<Args>(args)...) {}
  synchronized(const synchronized&) = delete;
  synchronized& operator=(const synchronized&) = delete;

  // Calls function(value) with the mutex held, and returns its result. The function may wait. The result should not
  // refer to the value, because others may use the value after the unlock. Throws the function's exception.
  template <class F>
  decltype(auto) with_lock(F&& function) {
    const std::lock_guard lock(guard_);
    return std::invoke(std::forward<F>(function), value_);
  }
  template <class F>
  decltype(auto) with_lock(F&& function) const {
    const std::lock_guard lock(guard_);
    return std::invoke(std::forward<F>(function), value_);
  }

  // Calls function(value), with a const value. Several callers of with_shared_lock may run at the same time. Otherwise
  // as with_lock.
  template <class F>
    requires shares
  decltype(auto) with_shared_lock(F&& function) const {
    const std::shared_lock lock(guard_);
    return std::invoke(std::forward<F>(function), value_);
  }

  // Returns a copy of the value. Throws exceptions of the copy.
  [[nodiscard]] T copy() const {
    const reading_lock lock(guard_);
    return value_;
  }

  // Replaces the value by `value`, and returns the old one. Throws exceptions of the moves.
  T exchange(T value) {
    const std::lock_guard lock(guard_);
    return std::exchange(value_, std::move(value));
  }

 private:
  mutable Mutex guard_;  // guards value_
  T value_{};
};

// synchronized counter(5);
template <class T>
synchronized(T) -> synchronized<T>;

}  // namespace ulexite
