#pragma once

// Counts the threads that are about to publish something in a runtime without being one of its workers. It is the
// pool's and not the runtime's, so that a thread which has claimed a wait may come to resume an abandoned fiber when the
// runtime has long gone.
//
// State
//   inside_   threads between enter and leave.
//   shut_     the workers have ended. Set once.
//
// Pairings
//   A  enter counts itself in inside_, then loads shut_; shut stores shut_, then loads inside_; all seq_cst. Either the
//      thread sees the gate shut, and keeps off the runtime, or shut sees the thread, and waits.
//   B  leave counts itself out, release  ->  shut, or idle, loads inside_, acquire: it sees what was published.

#include <ulexite/base/atomics.hpp>

#include <cstdint>

namespace ulexite::detail {

template <class Atomics = std_atomics>
class basic_outside_gate {
 public:
  // Any thread that publishes; leave follows whatever is returned. False: the runtime may be gone.
  [[nodiscard]] bool enter() noexcept {
    inside_.fetch_add(1, Atomics::seq_cst);  // A
    return !shut_.load(Atomics::seq_cst);    // A
  }
  void leave() noexcept { inside_.fetch_sub(1, Atomics::release); }  // B

  // Is no thread inside?
  [[nodiscard]] bool idle() const noexcept { return inside_.load(Atomics::acquire) == 0; }  // B

  // From now on enter returns false; waits until all have left for whom it did not. Once.
  void shut() noexcept {
    shut_.store(true, Atomics::seq_cst);                                                        // A
    for (unsigned turn = 0; inside_.load(Atomics::seq_cst) != 0; ++turn) Atomics::pause(turn);  // A, B
  }

 private:
  typename Atomics::template atomic<std::uint32_t> inside_{0};
  typename Atomics::template atomic<bool> shut_{false};
};

using outside_gate = basic_outside_gate<>;

}  // namespace ulexite::detail
