#pragma once

// Requests of another thread to all workers. A worker is at a safepoint between two fibers, and serves them there.
//
// State
//   bits_   see safepoint_request. Written by any thread; each worker reads it once in each turn of its loop.
//
// Pairings
//   A  request sets a bit before the caller takes the parker's mutex  ->  a worker that has left its sleep has held
//      that mutex later. So its load sees the bit. And: withdraw clears it, release  ->  the worker that finds it
//      clear, acquire, comes after all that was done while it was set.

#include <atomic>

namespace ulexite::detail {

enum class safepoint_request : unsigned {
  end = 1,      // the workers must end, even if there is work
  halt = 2,     // the world is being stopped, or is
  surplus = 4,  // there may be too many workers
};

class safepoint_flags {
 public:
  void request(safepoint_request what) noexcept {
    bits_.fetch_or(static_cast<unsigned>(what), std::memory_order_relaxed);  // A, ordered by the mutex
  }
  void withdraw(safepoint_request what) noexcept {
    bits_.fetch_and(~static_cast<unsigned>(what), std::memory_order_release);  // A
  }
  // Whether there is anything, with one load for all.
  [[nodiscard]] bool any() const noexcept { return bits_.load(std::memory_order_acquire) != 0; }  // A
  [[nodiscard]] bool requested(safepoint_request what) const noexcept {
    return (bits_.load(std::memory_order_relaxed) & static_cast<unsigned>(what)) != 0;  // hint
  }
  // A hint: the parker decides for workers that have nothing to run.
  [[nodiscard]] bool ending() const noexcept { return requested(safepoint_request::end); }

 private:
  std::atomic<unsigned> bits_{0};
};

}  // namespace ulexite::detail
