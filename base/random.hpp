#pragma once

#include <ulexite/base/standard.hpp>

#include <cstdint>

namespace ulexite::detail {

// A small fast generator for victims and cases: xorshift64* (Marsaglia 2003; Vigna 2016). Not for secrets.
class random {
 public:
  explicit constexpr random(std::uint64_t seed) noexcept : state_(seed * 0x9e3779b97f4a7c15u | 1) {}

  constexpr std::uint64_t next() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }

  // A number below `bound`, which is above 0 (Lemire's multiplication; the bias of 2^-32 * bound is harmless here).
  constexpr std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace ulexite::detail
