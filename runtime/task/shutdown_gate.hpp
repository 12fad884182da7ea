#pragma once

// Counts the threads that are about to publish something in a runtime: threads outside, the monitor, and workers that
// leave their queues to others. It belongs to the pool and not to the runtime. So a thread that has claimed a wait may
// still resume an abandoned fiber long after the runtime was destroyed.
//
// State
//   inside_   threads between enter and leave.
//   shut_     the workers have ended. Set once.
//
// Pairings
//   A  enter counts itself in inside_, then loads shut_; shut stores shut_, then loads inside_; all seq_cst. Either the
//      thread sees the gate shut, and does not touch the runtime, or shut sees the thread, and waits.
//   B  leave counts itself out, release  ->  shut, or idle, loads inside_, acquire: it sees the published items.

#include <ulexite/base/atomics.hpp>

#include <cstdint>

namespace ulexite::detail {

template <class Atomics = std_atomics>
class basic_shutdown_gate {
 public:
  // Any thread that publishes. The thread must call leave after any result. False: the runtime may be destroyed.
  [[nodiscard]] bool enter() noexcept {
    inside_.fetch_add(1, Atomics::seq_cst);  // A
    return !shut_.load(Atomics::seq_cst);    // A
  }
  void leave() noexcept { inside_.fetch_sub(1, Atomics::release); }  // B

  // Whether no thread is inside.
  [[nodiscard]] bool idle() const noexcept { return inside_.load(Atomics::acquire) == 0; }  // B

  // From now on enter returns false. Waits until all threads have left for which it returned true. Called once.
  void shut() noexcept {
    shut_.store(true, Atomics::seq_cst);                                                                 // A
    for (unsigned attempt = 0; inside_.load(Atomics::seq_cst) != 0; ++attempt) Atomics::pause(attempt);  // A, B
  }

 private:
  typename Atomics::template atomic<std::uint32_t> inside_{0};
  typename Atomics::template atomic<bool> shut_{false};
};

using shutdown_gate = basic_shutdown_gate<>;

// A thread inside, as a scope: for threads that know that the runtime exists.
class gate_guard {
 public:
  explicit gate_guard(shutdown_gate& gate) noexcept : gate_(gate) { static_cast<void>(gate_.enter()); }
  ~gate_guard() { gate_.leave(); }
  gate_guard(const gate_guard&) = delete;
  gate_guard& operator=(const gate_guard&) = delete;

 private:
  shutdown_gate& gate_;
};

}  // namespace ulexite::detail
