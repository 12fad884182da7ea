#pragma once

// How one wait of one fiber (or plain thread) ends: by exactly one of a notification, a time-out and a cancellation.
//
//   prepare   the waiter, while it still runs: from now on claims may come, although it cannot be resumed yet.
//   commit    on behalf of the waiter, once its context is saved: from now on a claimer resumes it.
//   claim     whoever would end the wait. One claim per wait succeeds.
//   stop      asks for cancellation. Sticky, outlives the wait.
//
// A wait that only one lock guards (a channel's, held until after the commit) needs no prepare. With a timer or a file
// descriptor armed before the switch, claims can come early; then the claimer does not resume the waiter, and the
// commit, which fails, does.
//
// State
//   word_   low bits: the phase; stop_bit: a stop was requested. The waiter moves it to preparing and waiting, claimers
//           away from there. Any number of threads may set stop_bit.
//
// Pairings
//   A  a claimer changes word_, acq_rel  ->  the resumed waiter, or a failing commit, reads the phase, acquire: it sees
//      what the claimer wrote before.
//   B  commit changes word_, acq_rel  ->  a claimer changes it, acq_rel: a claimer that resumes the waiter comes after
//      all that was done before the commit.
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
  void prepare() noexcept {
    auto word = word_.load(Atomics::relaxed);  // only stop_bit can change meanwhile
    while (!exchange_unpublished(word, (word & stop_bit) | preparing)) {
    }
  }

  // preparing -> idle, when the wait turns out to be needless. False if a claim came first. The waiter.
  [[nodiscard]] bool retract() noexcept {
    auto word = word_.load(Atomics::acquire);  // A
    do {
      if ((word & phase_mask) != preparing) return false;
    } while (!word_.compare_exchange_weak(word, word & stop_bit, Atomics::acq_rel, Atomics::acquire));  // A, B
    return true;
  }

  // To waiting; from preparing if `prepared`, else from the end of the last wait. False if the wait is over already: it
  // was claimed early, or it is cancellable and a stop was requested. On behalf of the waiter.
  [[nodiscard]] bool commit(bool prepared, bool cancellable) noexcept {
    auto word = word_.load(Atomics::acquire);  // A
    for (;;) {
      if (prepared && (word & phase_mask) != preparing) return false;
      const bool stop = cancellable && (word & stop_bit) != 0;
      const auto next = (word & stop_bit) | (stop ? cancelled : cancellable ? waiting : shielded);
      if (word_.compare_exchange_weak(word, next, Atomics::acq_rel, Atomics::acquire)) return !stop;  // A, B
    }
  }

  // preparing, waiting or shielded -> notified or timed_out. Any thread that holds the lock of what is waited for.
  [[nodiscard]] claim_result claim(wake_reason reason) noexcept {
    auto word = word_.load(Atomics::acquire);  // B
    for (;;) {
      const auto phase = word & phase_mask;
      if (phase != preparing && phase != waiting && phase != shielded) return claim_result::lost;
      const auto next = (word & stop_bit) | to_phase(reason);
      if (word_.compare_exchange_weak(word, next, Atomics::acq_rel, Atomics::acquire))  // A, B
        return phase == preparing ? claim_result::early : claim_result::won;
    }
  }

  struct stop_result {
    bool first;        // nobody had asked before
    bool must_resume;  // a wait was cancelled by this; the caller resumes the waiter
  };
  // Asks for cancellation, and cancels the present wait if it can be. Any thread.
  stop_result request_stop() noexcept {
    auto word = word_.load(Atomics::acquire);  // B
    for (;;) {
      const bool wakes = (word & phase_mask) == waiting;
      const auto next = wakes ? stop_bit | cancelled : word | stop_bit;
      if (word_.compare_exchange_weak(word, next, Atomics::acq_rel, Atomics::acquire))  // A, B
        return {(word & stop_bit) == 0, wakes};
    }
  }

  [[nodiscard]] bool stop_requested() const noexcept { return word_.load(Atomics::acquire) & stop_bit; }  // A

  // How the last wait ended. The waiter, once resumed; or a failed commit.
  [[nodiscard]] wake_reason reason() const noexcept {
    switch (word_.load(Atomics::acquire) & phase_mask) {  // A
      case timed_out: return wake_reason::timed_out;
      case cancelled: return wake_reason::cancelled;
      default: return wake_reason::notified;
    }
  }

  // True between commit and claim. A hint.
  [[nodiscard]] bool is_waiting() const noexcept {
    const auto phase = word_.load(Atomics::relaxed) & phase_mask;  // hint
    return phase == waiting || phase == shielded;
  }

  // For the next fiber that uses the same memory. Nobody else may refer to the old one, but a stop of everything may.
  void reset() noexcept { word_.store(idle, Atomics::relaxed); }  // published with the new fiber

 private:
  enum : std::uint32_t {
    idle,
    preparing,
    waiting,
    shielded,
    notified,
    timed_out,
    cancelled,
    phase_mask = 7,
    stop_bit = 8
  };

  bool exchange_unpublished(std::uint32_t& word, std::uint32_t next) noexcept {
    return word_.compare_exchange_weak(word, next, Atomics::relaxed, Atomics::relaxed);  // claimers' sources publish it
  }

  static constexpr std::uint32_t to_phase(wake_reason reason) noexcept {
    return reason == wake_reason::timed_out ? timed_out : reason == wake_reason::cancelled ? cancelled : notified;
  }

  typename Atomics::template atomic<std::uint32_t> word_{idle};
};

using wait_word = basic_wait_word<>;

}  // namespace ulexite::detail
