#pragma once

#include <ulexite/runtime/wait/agent.hpp>

#include <optional>
#include <stop_token>

namespace ulexite::detail {

// Lets a token's request to stop end a wait, by a claim of the waiter's prepared word.
class stop_claim {
 public:
  // From here on `waiter` may be claimed. If the stop was requested already, it is claimed now.
  void watch(const std::stop_token& token, agent& waiter) noexcept { callback_.emplace(token, claim{this, &waiter}); }

  // Ends this, waits for a claim under way, and returns whether there was one. Called after the wait.
  [[nodiscard]] bool deregister() noexcept;

 private:
  struct claim {
    stop_claim* at;
    agent* waiter;
    void operator()() const noexcept {
      const claim_result result = waiter->word.claim(wake_reason::notified);
      at->claimed_ = result != claim_result::lost;
      if (result == claim_result::won) resume(*waiter);
    }
  };

  std::optional<std::stop_callback<claim>> callback_;
  bool claimed_ = false;
};

}  // namespace ulexite::detail
