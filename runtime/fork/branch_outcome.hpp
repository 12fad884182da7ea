#pragma once

// The outcome of a branch of a fork. The taker publishes it to the forking fiber. The forking fiber may have to wait
// for it, because between its theft and its start a branch has no fiber to join.
//
// State
//   state_   0, nothing yet; the agent that waits; or the outcome. The taker writes it once, and the forking fiber only
//            over 0. There is no third writer.
//
// Pairings
//   A  publish exchanges state_, acq_rel  ->  known loads it, or a wait_for that has failed, acquire: the forking fiber
//      sees the taker's earlier writes.
//   B  wait_for stores the agent in state_, acq_rel  ->  publish exchanges it out, acq_rel: the taker sees a wait that
//      is prepared.
//
// Checked by tests/model/branch_model.cpp.

#include <ulexite/base/atomics.hpp>
#include <ulexite/runtime/wait/wait_word.hpp>

#include <cstdint>

namespace ulexite::detail {

template <class Agent, class Atomics = std_atomics>
class branch_outcome {
 public:
  // Publishes `outcome`, which is not 0. Returns the waiter that the caller must resume, or null. Called by the taker,
  // once. The object may be destroyed when this returns.
  [[nodiscard]] Agent* publish(std::uintptr_t outcome) noexcept {
    const auto waiter = reinterpret_cast<Agent*>(state_.exchange(outcome, Atomics::acq_rel));  // A, B
    return waiter && waiter->word.claim(wake_reason::notified) == claim_result::won ? waiter : nullptr;
  }

  // The outcome, or 0. Called by the forking fiber, while it does not wait.
  [[nodiscard]] std::uintptr_t known() const noexcept { return state_.load(Atomics::acquire); }  // A

  // Makes `self`, the forking fiber, wait for the outcome. True: its word is prepared, and the caller must suspend it
  // now, not cancellable. False: the outcome is known already.
  [[nodiscard]] bool wait_for(Agent& self) noexcept {
    self.word.prepare();
    std::uintptr_t none = 0;
    if (state_.compare_exchange_strong(none, reinterpret_cast<std::uintptr_t>(&self), Atomics::acq_rel,
                                       Atomics::acquire))  // A, B
      return true;
    static_cast<void>(self.word.retract());  // no other thread knows of the wait
    return false;
  }

 private:
  typename Atomics::template atomic<std::uintptr_t> state_{0};
};

}  // namespace ulexite::detail
