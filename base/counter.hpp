#pragma once

#include <ulexite/base/standard.hpp>

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

// A word that others read only as a hint: it orders nothing.
template <class T>
class hint {
 public:
  constexpr explicit hint(T value = {}) noexcept : value_(value) {}

  [[nodiscard]] T get() const noexcept { return value_.load(std::memory_order_relaxed); }  // hint
  void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }           // hint

 private:
  std::atomic<T> value_;  // State: as its owner says
};

// A counter that one thread at a time writes and others read.
class counter {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);  // counter, owner-written
  }
  // For the ends of fibers: a thread that gets it sees their spawns counted (fiber_counts.hpp, B).
  void add_after_others(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);  // pairs with get's load
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_acquire);  // pairs with add_after_others' store
  }

 private:
  std::atomic<std::uint64_t> value_{0};  // State: a counter, written by one thread at a time
};

}  // namespace ulexite::detail
