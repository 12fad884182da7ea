#pragma once

// How one wait of one fiber (or plain thread) ends: by exactly one of a notification, a time-out and a cancellation.
//
//   prepare   the waiter, while it still runs: from now on claims may come, although it cannot be resumed yet.
//   commit    on behalf of the waiter, once its context is saved: from now on a claimer resumes it.
//   claim     whoever would end the wait. One claim per wait succeeds.
//   stop      asks for cancellation. Sticky, outlives the wait; the body of a scope hears of a child's failure in the
//             same way, until the scope's end.
//
// A wait that only one lock guards (a channel's, held until after the commit) needs no prepare. With a timer or a file
// descriptor armed before the switch, claims can come early; then the claimer does not resume the waiter, and the
// commit, which fails, does. A plain thread always prepares: after its deadline, or when it is poked, it claims its own
// wait without the lock.
//
// State
//   phase_     the waiter moves it to preparing, waiting, shielded, guarded or bare; claimers move it away from there.
//              A prepared wait (waiting, shielded) may have several claimers, so each of them exchanges. Another wait
//              has one claimer at a time, the holder of the lock. If it is not cancellable (bare), the claimer stores.
//              If it is (guarded), a canceller may race with the claimer; cancellers are rare and pay for both, see D.
//   claiming_  a claimer has come to a guarded wait. Set under the lock, cleared with the next wait.
//   stop_      bit 0: a request to stop, set by any thread, never cleared while the fiber lives. The rest counts the
//              scopes that have a failure: raised by a failed child, lowered by the waiter when all children have
//              ended, so that no canceller is under way for it.
//
// The thread that abandons a fiber stores phase_ whatever it is. A claimer that does not see it yet may win, and then
// resumes in vain (task_pool.hpp, outside_gate); every later one loses.
//
// Pairings
//   A  a claimer changes phase_, acq_rel  ->  the resumed waiter, or a failing commit, reads it, acquire: it sees what
//      the claimer wrote before.
//   B  commit changes phase_, release  ->  a claimer changes it, acq_rel: a claimer that resumes the waiter comes after
//      all that was done before the commit.
//   C  commit changes phase_, then loads stop_; a canceller sets stop_, then changes phase_. Between the two, the first
//      has a light fence and the second a heavy one (task.cpp): either the waiter sees the request, or the canceller
//      the wait.
//   D  a claimer of a guarded wait sets claiming_, then loads stop_; a canceller sets stop_, then loads claiming_. With
//      the same fences as in C either the claimer sees the request, and then exchanges phase_ like the canceller, or
//      the canceller sees the claimer, and gives way.
//   E  request_stop sets stop_, release  ->  the fiber loads it, acquire: it sees what the requester wrote before.
//
// Checked by tests/model/wait_word_model.cpp.

#include <ulexite/base/atomics.hpp>

#include <cstdint>

namespace ulexite::detail {

enum class wake_reason : std::uint8_t { notified, timed_out, cancelled };

// What a claimer has to do.
enum class claim_result : std::uint8_t {
  lost,   // another was first, or nobody waits
  early,  // won; the waiter is about to notice by itself
  won,    // won, and the waiter must be resumed by the claimer
};

template <class Atomics = std_atomics>
class basic_wait_word {
 public:
  // idle -> preparing. The waiter.
  void prepare() noexcept { phase_.store(preparing, Atomics::relaxed); }  // published by the claimers' sources

  // preparing -> idle, when the wait turns out to be needless. False if a claim came first. The waiter.
  [[nodiscard]] bool retract() noexcept { return advance(preparing, idle); }

  // From preparing if `prepared`, else from the end of the last wait, to where claims resume. False if the wait is over
  // already: it was claimed early, or it is cancellable and a stop was requested. On behalf of the waiter.
  [[nodiscard]] bool commit(bool prepared, bool cancellable) noexcept {
    std::uint8_t next;
    if (prepared) {
      next = cancellable ? waiting : shielded;
      if (!advance(preparing, next)) return false;
    } else {
      next = cancellable ? guarded : bare;
      claiming_.store(false, Atomics::relaxed);  // published by phase_
      phase_.store(next, Atomics::release);      // B
    }
    if (!cancellable) return true;
    Atomics::light_fence();                                                 // C
    return stop_.load(Atomics::acquire) == 0 || !advance(next, cancelled);  // E, ordered by C's fence
  }

  // Ends the wait as notified or timed_out. Any thread that holds the lock of what is waited for; if the wait was
  // prepared, any thread.
  [[nodiscard]] claim_result claim(wake_reason reason) noexcept {
    auto phase = phase_.load(Atomics::acquire);  // B
    if (phase == bare || (phase == guarded && claims_alone())) {
      phase_.store(to_phase(reason), Atomics::release);  // A
      return claim_result::won;
    }
    for (;;) {
      if (phase < preparing || phase > guarded) return claim_result::lost;
      if (phase_.compare_exchange_weak(phase, to_phase(reason), Atomics::acq_rel, Atomics::relaxed))  // A, B
        return phase == preparing ? claim_result::early : claim_result::won;
    }
  }

  // Asks for cancellation. True the first time. The caller executes a heavy fence (C), and then calls cancel; one fence
  // does for many words. Any thread.
  bool request_stop() noexcept { return (stop_.fetch_or(requested, Atomics::release) & requested) == 0; }  // E
  // The same for the rest of a scope, whose end takes it back. At most 127 scopes of a fiber are inside of each other.
  void interrupt() noexcept { stop_.fetch_add(one_scope, Atomics::release); }  // E
  // Takes one interrupt back. The waiter, while no canceller is under way on its behalf.
  void end_interrupt() noexcept { stop_.fetch_sub(one_scope, Atomics::relaxed); }  // the waiter's own
  // Ends the present wait if it is cancellable: true if the caller is to resume the waiter. Any thread.
  [[nodiscard]] bool cancel() noexcept {
    const auto phase = phase_.load(Atomics::acquire);                        // B
    if (phase == guarded && claiming_.load(Atomics::acquire)) return false;  // D, ordered by the caller's fence
    return (phase == waiting || phase == guarded) && advance(phase, cancelled);
  }

  [[nodiscard]] bool stop_requested() const noexcept { return stop_.load(Atomics::acquire) != 0; }  // E

  // How the last wait ended. The waiter, once resumed; or after a failed commit or retract.
  [[nodiscard]] wake_reason reason() const noexcept {
    switch (phase_.load(Atomics::acquire)) {  // A
      case timed_out: return wake_reason::timed_out;
      case cancelled: return wake_reason::cancelled;
      default: return wake_reason::notified;
    }
  }

  // The waiter never runs again: every claim is lost from now on. The thread that has ended its runtime's workers.
  void abandon() noexcept { phase_.store(gone, Atomics::relaxed); }  // who misses it resumes in vain
  // Does it wait at this moment? Any thread; exact as long as the waiter is kept from running (inspection.hpp).
  [[nodiscard]] bool waits() const noexcept {
    const auto phase = phase_.load(Atomics::relaxed);  // hint
    return phase >= waiting && phase <= bare;
  }
  // Was it abandoned? With the lock of what it waits for, while it stands there.
  [[nodiscard]] bool abandoned() const noexcept { return phase_.load(Atomics::relaxed) == gone; }  // hint

  // For the next fiber that uses the same memory. Nobody else may refer to the old one, but a stop of everything may.
  void reset() noexcept {
    phase_.store(idle, Atomics::relaxed);  // published with the new fiber
    stop_.store(0, Atomics::relaxed);      // published with the new fiber
  }

 private:
  enum : std::uint8_t { idle, preparing, waiting, shielded, guarded, bare, notified, timed_out, cancelled, gone };

  static constexpr std::uint8_t requested = 1, one_scope = 2;  // in stop_

  static constexpr std::uint8_t to_phase(wake_reason reason) noexcept {
    return reason == wake_reason::timed_out ? timed_out : reason == wake_reason::cancelled ? cancelled : notified;
  }

  // Of a guarded wait, with the lock held: is there no canceller?
  bool claims_alone() noexcept {
    claiming_.store(true, Atomics::relaxed);   // ordered by the fence
    Atomics::light_fence();                    // D
    return stop_.load(Atomics::relaxed) == 0;  // ordered by the fence
  }

  bool advance(std::uint8_t from, std::uint8_t to) noexcept {
    return phase_.compare_exchange_strong(from, to, Atomics::acq_rel, Atomics::acquire);  // A, B
  }

  typename Atomics::template atomic<std::uint8_t> phase_{idle};
  typename Atomics::template atomic<bool> claiming_{false};
  typename Atomics::template atomic<std::uint8_t> stop_{0};
};

using wait_word = basic_wait_word<>;

}  // namespace ulexite::detail
