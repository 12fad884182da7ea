#pragma once

// The end of one wait of a fiber or plain thread: by exactly one of a notification, a time-out and a cancellation.
//
//   prepare   called by the waiter, while it still runs: from now on claims may arrive, although it cannot be resumed
//             yet.
//   commit    on behalf of the waiter, once its context is saved: from now on a claimer resumes it.
//   claim     called by a claimer, to end the wait. One claim per wait succeeds.
//   stop      asks for cancellation. It outlives the wait, and is never withdrawn. A child's failure cancels the body
//             of a scope in the same way, until the scope's end.
//
// A wait that only one lock guards (a channel's, held until after the commit) needs no prepare. With a timer or a file
// descriptor armed before the switch, claims can be early. Then the claimer does not resume the waiter; the commit
// fails, and the waiter continues without a sleep.
//
// State
//   phase_     the waiter moves it to preparing, waiting or shielded; claimers move it away from there, by exchange.
//   stop_      bit 0: a request to stop, set by any thread, never cleared while the fiber lives. The rest counts the
//              scopes that have a failure. A failed child raises it. The waiter lowers it when all children have ended,
//              because then no canceller acts for it.
//
// The thread that abandons a fiber stores phase_ without regard to its value. A claimer that does not see this store
// yet may win, and its resume then has no effect (shutdown_gate.hpp). Every later claimer loses.
//
// Pairings
//   A  a claimer changes phase_, acq_rel  ->  the resumed waiter, or a failing commit, reads it, acquire: it sees the
//      claimer's earlier writes.
//   B  commit changes phase_, release  ->  a claimer changes it, acq_rel: a claimer that resumes the waiter sees all
//      writes before the commit.
//   C  commit changes phase_, then loads stop_; a canceller sets stop_, then changes phase_. Between its two steps the
//      commit has a light fence, and the canceller a heavy one (rare_task_state.cpp). Either the waiter sees the
//      request, or the canceller sees the wait.
//   D  request_stop sets stop_, release  ->  the fiber loads it, acquire: it sees the requester's earlier writes.
//
// Checked by tests/model/wait_word_model.cpp.

#include <ulexite/base/atomics.hpp>

#include <cstdint>

namespace ulexite::detail {

enum class wake_reason : std::uint8_t { notified, timed_out, cancelled };

// The result of a claim, which says what the claimer must do.
enum class claim_result : std::uint8_t {
  lost,   // another claimer was first, or there is no wait
  early,  // won; do not resume the waiter
  won,    // won, and the waiter must be resumed by the claimer
};

template <class Atomics = std_atomics>
class basic_wait_word {
 public:
  // idle -> preparing. Called by the waiter.
  void prepare() noexcept { phase_.store(preparing, Atomics::relaxed); }  // published by the claimers' sources

  // preparing -> idle, if the wait is unnecessary. False if a claim was first. Called by the waiter.
  [[nodiscard]] bool retract() noexcept { return advance(preparing, idle); }

  // From preparing if `prepared`, otherwise from the end of the last wait, to a phase in which claims resume. False if
  // the wait has ended already: it was claimed early, or it is cancellable and a stop was requested. Called on behalf
  // of the waiter.
  [[nodiscard]] bool commit(bool prepared, bool cancellable) noexcept {
    const std::uint8_t next = cancellable ? waiting : shielded;
    if (!prepared) {
      phase_.store(next, Atomics::release);  // B
    } else if (!advance(preparing, next)) {
      return false;
    }
    if (!cancellable) return true;
    Atomics::light_fence();                                                    // C
    return stop_.load(Atomics::acquire) == 0 || !advance(waiting, cancelled);  // D, ordered by C's fence
  }

  // Ends the wait as notified or timed_out. Any thread.
  [[nodiscard]] claim_result claim(wake_reason reason) noexcept {
    for (auto phase = phase_.load(Atomics::relaxed);;) {  // the exchange decides
      if (phase < preparing || phase > shielded) return claim_result::lost;
      if (phase_.compare_exchange_weak(phase, to_phase(reason), Atomics::acq_rel, Atomics::relaxed))  // A, B
        return phase == preparing ? claim_result::early : claim_result::won;
    }
  }

  // Asks for cancellation. True the first time. The caller executes a heavy fence (C), and then calls cancel; one fence
  // is enough for many words. Any thread.
  bool request_stop() noexcept { return (stop_.fetch_or(requested, Atomics::release) & requested) == 0; }  // D
  // As request_stop, until a scope ends; the scope's end undoes it. At most 127 scopes of a fiber are nested.
  void interrupt() noexcept { stop_.fetch_add(one_scope, Atomics::release); }  // D
  // Undoes one interrupt. Called by the waiter, while no canceller is under way for the interrupt.
  void end_interrupt() noexcept { stop_.fetch_sub(one_scope, Atomics::relaxed); }  // the waiter's own
  // Ends the present wait if it is cancellable. True if the caller must resume the waiter. Any thread.
  [[nodiscard]] bool cancel() noexcept { return advance(waiting, cancelled); }

  [[nodiscard]] bool stop_requested() const noexcept { return stop_.load(Atomics::acquire) != 0; }  // D

  // How the last wait ended. Called by the waiter, once resumed, or after a failed commit or retract.
  [[nodiscard]] wake_reason reason() const noexcept {
    switch (phase_.load(Atomics::acquire)) {  // A
      case timed_out: return wake_reason::timed_out;
      case cancelled: return wake_reason::cancelled;
      default: return wake_reason::notified;
    }
  }

  // The waiter never runs again: every later claim is lost. Called by the thread that has ended its runtime's workers.
  void abandon() noexcept { phase_.store(gone, Atomics::relaxed); }  // a claimer that misses it resumes without effect
  // Whether it waits at this moment. Any thread; exact while the waiter is kept from running (inspection.hpp).
  [[nodiscard]] bool waits() const noexcept {
    const auto phase = phase_.load(Atomics::relaxed);  // hint
    return phase == waiting || phase == shielded;
  }
  // Whether it was abandoned. With the lock of the wait's object, while the node is linked there.
  [[nodiscard]] bool abandoned() const noexcept { return phase_.load(Atomics::relaxed) == gone; }  // hint

  // Prepares for the next fiber in this memory. Only runtime::request_stop may still refer to the old fiber.
  void reset() noexcept {
    phase_.store(idle, Atomics::relaxed);  // published with the new fiber
    stop_.store(0, Atomics::relaxed);      // published with the new fiber
  }

 private:
  enum : std::uint8_t { idle, preparing, waiting, shielded, notified, timed_out, cancelled, gone };

  static constexpr std::uint8_t requested = 1, one_scope = 2;  // in stop_

  static constexpr std::uint8_t to_phase(wake_reason reason) noexcept {
    return reason == wake_reason::timed_out ? timed_out : reason == wake_reason::cancelled ? cancelled : notified;
  }

  bool advance(std::uint8_t from, std::uint8_t to) noexcept {
    return phase_.compare_exchange_strong(from, to, Atomics::acq_rel, Atomics::acquire);  // A, B
  }

  typename Atomics::template atomic<std::uint8_t> phase_{idle};
  typename Atomics::template atomic<std::uint8_t> stop_{0};
};

using wait_word = basic_wait_word<>;

}  // namespace ulexite::detail
