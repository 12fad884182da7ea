#pragma once

// The clock of all deadlines, and the two kinds of timeout. A deadline is a point in time of the steady clock, in
// nanoseconds.

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

}  // namespace detail

inline steady_clock::time_point steady_clock::now() noexcept { return time_point(duration(detail::now_ns())); }

// A parameter: how long a call may wait at most. Converts from any duration of std::chrono, which counts from then on.
// A duration of zero or less means now; a duration that does not fit means never. Any thread.
class relative_timeout {
 public:
  // Never.
  constexpr relative_timeout() noexcept = default;
  template <class Rep, class Period>
  relative_timeout(std::chrono::duration<Rep, Period> time) noexcept {
    using nanoseconds = std::chrono::duration<double, std::nano>;
    if (!(time > time.zero())) {
      deadline_ = 0;
    } else if (nanoseconds(time).count() < 9e18) {
      const std::int64_t now = detail::now_ns();
      const auto span = std::chrono::ceil<std::chrono::nanoseconds>(time).count();
      if (span <= detail::no_deadline - now) deadline_ = now + span;
    }
  }

  // When it ends, in nanoseconds of steady_clock.
  [[nodiscard]] std::int64_t deadline() const noexcept { return deadline_; }

 private:
  std::int64_t deadline_ = detail::no_deadline;
};

// A parameter: until when a call may wait. Converts from a point in time of any clock. Clocks other than steady_clock
// are read once, then: their changes during the wait have no effect. Any thread.
class absolute_timeout {
 public:
  // Never.
  constexpr absolute_timeout() noexcept = default;
  template <class Duration>
  absolute_timeout(std::chrono::time_point<steady_clock, Duration> time) noexcept {
    using nanoseconds = std::chrono::duration<double, std::nano>;
    const auto span = time.time_since_epoch();
    if (!(span > span.zero())) {
      deadline_ = 0;
    } else if (nanoseconds(span).count() < 9e18) {
      deadline_ = std::chrono::ceil<std::chrono::nanoseconds>(span).count();
    }
  }
  template <class Clock, class Duration>
  absolute_timeout(std::chrono::time_point<Clock, Duration> time) noexcept {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {  // equal to steady_clock unless time is simulated
      if (!detail::controlled()) {
        *this = std::chrono::time_point<steady_clock, Duration>(time.time_since_epoch());
        return;
      }
    }
    using nanoseconds = std::chrono::duration<double, std::nano>;
    const auto now = Clock::now();
    const double left = nanoseconds(time.time_since_epoch()).count() - nanoseconds(now.time_since_epoch()).count();
    if (left > far || left < -far) {  // then `time` may not fit into the unit that a comparison would convert it to
      deadline_ = relative_timeout(nanoseconds(left)).deadline();
    } else {
      deadline_ = time > now ? relative_timeout(time - now).deadline() : 0;
    }
  }

  // When it ends, in nanoseconds of steady_clock.
  [[nodiscard]] std::int64_t deadline() const noexcept { return deadline_; }

 private:
  static constexpr double far = 1e15;  // ns, some 11 days: beyond it a microsecond does not matter

  std::int64_t deadline_ = detail::no_deadline;
};

}  // namespace ulexite
