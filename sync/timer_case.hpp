#pragma once

#include <ulexite/sync/select_case.hpp>

#include <cstdint>

namespace ulexite::detail {

// A case that is a deadline and nothing else.
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
