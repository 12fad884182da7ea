#pragma once

#include <ulexite/sync/select/select_case.hpp>

#include <cstdint>

namespace ulexite::detail {

// A case that is only a deadline. It is not in select_case.hpp. A compiler that sees only one kind of case predicts
// that kind at every virtual call, and that is wrong in choose().
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
