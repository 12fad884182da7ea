#pragma once

#include <ulexite/base/standard.hpp>

#include <chrono>
#include <cstdint>

namespace ulexite::testing {

// The sum of two times, of which `more` is not negative, or the largest time if the sum does not fit.
constexpr std::int64_t saturated_sum(std::int64_t time, std::chrono::nanoseconds more) noexcept {
  return more.count() > INT64_MAX - time ? INT64_MAX : time + more.count();
}

}  // namespace ulexite::testing
