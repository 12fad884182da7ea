#include <ulexite/runtime/trace/run_times.hpp>

#include <chrono>

namespace ulexite::detail {
namespace {

// 2^32 times the nanoseconds of a tick. One scale for the process, because all processors' clocks have one rate.
std::atomic<std::uint64_t> scale{0};

// By the system's clock, because the runtime's own clock may not advance in an exploration.
std::uint64_t measure() noexcept {
  using std::chrono::steady_clock;
  const steady_clock::time_point first_time = steady_clock::now();
  const std::uint64_t first_ticks = clock_ticks();
  std::chrono::nanoseconds elapsed{0};
  while (elapsed < std::chrono::milliseconds(1)) elapsed = steady_clock::now() - first_time;
  const std::uint64_t ticks = clock_ticks() - first_ticks;
  return (static_cast<std::uint64_t>(elapsed.count()) << 32) / (ticks != 0 ? ticks : 1);
}

}  // namespace

// Two threads may measure at the same time. Both results are good, and the later store wins.
void measure_clock() noexcept {
  if (scale.load(std::memory_order_relaxed) == 0)       // a number
    scale.store(measure(), std::memory_order_relaxed);  // a number, published by the start of a recording
}

std::uint64_t clock_scale() noexcept { return scale.load(std::memory_order_relaxed); }  // a number

// The product of ticks and scale needs more than 64 bits.
std::uint64_t nanoseconds_of(std::uint64_t ticks) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(wide{ticks} * scale.load(std::memory_order_relaxed) >> 32);  // a number
}

}  // namespace ulexite::detail
