#pragma once

#include <ulexite/fiber/fiber.hpp>
#include <ulexite/runtime/wait/agent.hpp>

#include <cstdint>

namespace ulexite::detail {

// The record of a fiber that may run, end, or give way to another meanwhile. Its memory always exists, and the reader
// checks the data afterwards. So sanitizers, which would report both, do not check copy_record.
struct raw_record {
  static_assert(sizeof(agent) % 8 == 0 && sizeof(fiber) % 8 == 0);
  using word = std::uint64_t __attribute__((may_alias));  // it holds parts of other types
  alignas(16) word words[(sizeof(agent) + sizeof(fiber)) / 8];

  [[nodiscard]] const agent& owner() const noexcept { return *reinterpret_cast<const agent*>(words); }
  [[nodiscard]] const fiber& content() const noexcept { return *reinterpret_cast<const fiber*>(&owner() + 1); }
};

// Word by word, because no pointer may be torn.
void copy_record(const agent& block, raw_record& into) noexcept;

// The milliseconds from `since` to `now`, both of the coarse clock. None if the wait has begun after `now` was read.
inline std::uint32_t waited_since(std::uint32_t since, std::uint32_t now) noexcept {
  constexpr std::uint32_t most_behind = 60'000;
  const std::uint32_t time = now - since;
  return time > UINT32_MAX - most_behind ? 0 : time;
}

}  // namespace ulexite::detail
