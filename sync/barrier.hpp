#pragma once

// A meeting point for a known number of fibers and threads, phase after phase, with std::barrier's interface.

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ulexite {

namespace detail {

struct coroutine_access;

// The part of barrier that does not depend on the type of `Done`.
class barrier_core {
 public:
  // Proof of an arrival in a phase. The wait for the phase's end spends it.
  class arrival {
   public:
    arrival(arrival&& other) noexcept : at_(std::exchange(other.at_, nullptr)), phase_(other.phase_) {}
    arrival& operator=(arrival&& other) noexcept {
      at_ = std::exchange(other.at_, nullptr);
      phase_ = other.phase_;
      return *this;
    }

   private:
    friend barrier_core;
    friend class barrier_case;
    arrival(const barrier_core* at, std::uint64_t phase) noexcept : at_(at), phase_(phase) {}

    const barrier_core* at_;
    std::uint64_t phase_;
  };

  constexpr explicit barrier_core(std::ptrdiff_t expected) : expected_(expected), missing_(expected) {
    if (expected < 0) refuse(expected);
  }

  // Arrives `n` times. Sets `last` if this ends the phase: the caller must then call complete(), and until then no
  // other can arrive.
  arrival arrive(std::ptrdiff_t n, bool& last);
  // As above, of one that is not expected again.
  bool drop();
  // As drop(), unless the phase of `arrival` goes on: the arrival was in this phase.
  bool drop(arrival& arrival);
  // Begins the next phase, and releases all waiters.
  void complete() noexcept;
  // Spends `arrival` unless it throws.
  void wait(arrival& arrival);

 private:
  friend class barrier_case;
  [[noreturn]] static void refuse(std::ptrdiff_t expected);
  void check(const arrival& arrival) const;

  spin_lock guard_;          // guards the rest
  std::ptrdiff_t expected_;  // arrivals in each phase, from the next one on
  std::ptrdiff_t missing_;   // arrivals in this phase
  std::uint64_t phase_ = 0;  // tells a token of an ended phase from one of this phase
  wait_queue queue_;
};

struct nothing_to_do {
  void operator()() const noexcept {}
};

}  // namespace detail

// A meeting point of a fixed number of fibers or threads, in phases. A phase ends when all expected arrivals have
// happened. Then the last to arrive calls `Done`. After that all waiters of the phase are released, and the next phase
// begins. Done may wait. A shield protects it from requests to stop and deadlines of its caller, because the others
// depend on it. Fibers and plain threads may use the barrier at the same time. It may be destroyed after every call on
// it has returned, if there will be no other.
//
// A fiber that was cancelled at the barrier has arrived, and the next phases still expect it. To leave, it keeps the
// token of its arrival and gives it to drop().
template <class Done = detail::nothing_to_do>
class barrier {
  static_assert(std::is_nothrow_invocable_v<Done&>, "Done must be noexcept, as std::barrier has it");

 public:
  // Proof of an arrival, for wait(). Movable.
  using arrival_token = detail::barrier_core::arrival;

  // Makes a barrier for `expected` arrivals per phase. Throws usage_error if `expected` is negative.
  constexpr explicit barrier(std::ptrdiff_t expected, Done done = Done()) : core_(expected), done_(std::move(done)) {}
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  // The largest number of arrivals that a phase can expect.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return PTRDIFF_MAX; }

  // Arrives `n` times. Waits only if Done does. Not a cancellation point. Throws usage_error, without arriving, if `n`
  // is not positive or greater than the number of missing arrivals in this phase.
  [[nodiscard]] arrival_token arrive(std::ptrdiff_t n = 1) {
    bool last = false;
    arrival_token token = core_.arrive(n, last);
    if (last) end_phase();
    return token;
  }

  // Waits for the end of the phase of the token; returns immediately if that phase is over. A cancellation point:
  // throws operation_cancelled, and the token stays valid. Throws usage_error for a token of another barrier, or a
  // token that was used.
  void wait(arrival_token&& token) const { core_.wait(token); }

  // Arrives, and waits for the end of the phase. A cancellation point: if it throws operation_cancelled it has arrived,
  // so the phase can end. Use arrive(), wait() and drop() if the caller must leave then.
  void arrive_and_wait() { wait(arrive()); }

  // Arrives, and is not expected in later phases. Waits only if Done does. Not a cancellation point. Throws
  // usage_error, with nothing changed, if no arrival is missing.
  void arrive_and_drop() {
    if (core_.drop()) end_phase();
  }

  // Leaves after an arrival: a wait() for the token was cancelled, or there was none. The caller is not expected in
  // later phases. If the phase of the token is over, it works as arrive_and_drop. Otherwise it arrives nowhere, and
  // does not wait. Not a cancellation point. Throws usage_error as wait() and arrive_and_drop, with nothing changed.
  void drop(arrival_token&& token) {
    if (core_.drop(token)) end_phase();
  }

 private:
  friend struct detail::coroutine_access;
  void end_phase() noexcept {
    if constexpr (!std::is_same_v<Done, detail::nothing_to_do>) {
      const shield unheard;
      done_();
    }
    core_.complete();
  }

  mutable detail::barrier_core core_;
  [[no_unique_address]] Done done_;
};

}  // namespace ulexite
