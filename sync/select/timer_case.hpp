#pragma once

#include <ulexite/sync/select/select_case.hpp>

#include <cstdint>

namespace ulexite::detail {

// A case that is a deadline and nothing else. Not in select_case.hpp: where a compiler sees but one kind of case, it
// guesses that one at every virtual call, in choose() in vain.
class timer_case : public select_case {
 public:
  explicit timer_case(std::int64_t until) noexcept { deadline = until; }
  [[nodiscard]] bool attempt(agent*&) final { return false; }
  void enter(agent&) noexcept final {}
  [[nodiscard]] ending leave() noexcept final { return ending::other; }

 protected:
  ~timer_case() = default;
};

}  // namespace ulexite::detail
