#pragma once

#include <ulexite/runtime/wait/current.hpp>

#include <cstdint>
#include <utility>

namespace ulexite {

// Protects the rest of a block: the calling fiber ignores requests to stop, and deadlines that were set outside. Use it
// for work that must be finished once it has begun. Fibers that are spawned inside have no deadline. A child's
// failure does not cancel the body of a scope, even of one that begins inside. this_fiber::stop_requested() still
// reports the request.
class shield {
 public:
  [[nodiscard]] shield() noexcept
      : self_(detail::this_agent()),
        deadline_(std::exchange(self_.deadline, detail::no_deadline)),
        shielded_(self_.shielded),
        expired_(self_.expired) {
    self_.shielded = true;
    self_.expired = false;
  }
  shield(const shield&) = delete;
  shield& operator=(const shield&) = delete;
  ~shield() {
    self_.deadline = deadline_;
    self_.shielded = shielded_;
    self_.expired = expired_;
  }

 private:
  detail::agent& self_;  // its members before the shield follow
  const std::int64_t deadline_;
  const bool shielded_, expired_;
};

}  // namespace ulexite
