#pragma once

// Deadlines: points in time of the steady clock, in nanoseconds.

#include <ulexite/base/controller.hpp>

#include <chrono>
#include <cstdint>
#include <type_traits>

namespace ulexite {

// The clock of every deadline. It is std::chrono::steady_clock, with its epoch, except in a test with simulated time
// (testing/explore.hpp). Functions that take a point in time also accept those of other clocks.
struct steady_clock {
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<steady_clock>;
  static constexpr bool is_steady = true;
  // Any thread.
  static time_point now() noexcept;
};

namespace detail {

inline constexpr std::int64_t no_deadline = INT64_MAX;

// The time of this clock in nanoseconds.
inline std::int64_t now_ns() noexcept {
  if (controlled_somewhere.load(std::memory_order_relaxed)) [[unlikely]]  // hint
    return controlled_clock_ns();
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// A deadline `time` from now. A negative time means now; a time that does not fit means never.
template <class Rep, class Period>
std::int64_t deadline_after(std::chrono::duration<Rep, Period> time) noexcept {
  using nanoseconds = std::chrono::duration<double, std::nano>;
  if (!(time > time.zero())) return 0;
  if (nanoseconds(time).count() >= 9e18) return no_deadline;
  const std::int64_t now = now_ns();
  const auto span = std::chrono::ceil<std::chrono::nanoseconds>(time).count();
  return span > no_deadline - now ? no_deadline : now + span;
}

// A deadline at a point in time. Another clock is read once, here: its changes during the wait have no effect.
template <class Clock, class Duration>
std::int64_t deadline_at(std::chrono::time_point<Clock, Duration> time) noexcept {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    if (!controlled()) return deadline_at(std::chrono::time_point<steady_clock, Duration>(time.time_since_epoch()));
    return deadline_after(time - Clock::now());
  } else if constexpr (std::is_same_v<Clock, steady_clock>) {
    using nanoseconds = std::chrono::duration<double, std::nano>;
    const auto span = time.time_since_epoch();
    if (!(span > span.zero())) return 0;
    if (nanoseconds(span).count() >= 9e18) return no_deadline;
    return std::chrono::ceil<std::chrono::nanoseconds>(span).count();
  } else {
    const auto now = Clock::now();
    return time > now ? deadline_after(time - now) : 0;
  }
}

}  // namespace detail

inline steady_clock::time_point steady_clock::now() noexcept { return time_point(duration(detail::now_ns())); }

}  // namespace ulexite
