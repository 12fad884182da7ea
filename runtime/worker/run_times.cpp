#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/worker/run_times.hpp>

namespace ulexite::detail {
namespace {

// 2^32 times the nanoseconds of a tick.
std::atomic<std::uint64_t> scale{0};

std::uint64_t measure() noexcept {
  constexpr std::int64_t long_enough = 1'000'000;
  const std::int64_t first_time = now_ns();
  const std::uint64_t first_ticks = clock_ticks();
  std::int64_t elapsed = 0;
  while (elapsed < long_enough) elapsed = now_ns() - first_time;
  const std::uint64_t ticks = clock_ticks() - first_ticks;
  return (static_cast<std::uint64_t>(elapsed) << 32) / (ticks != 0 ? ticks : 1);
}

}  // namespace

void measure_clock() noexcept {
  if (scale.load(std::memory_order_relaxed) == 0)       // a number
    scale.store(measure(), std::memory_order_relaxed);  // a number, published by what starts a recording
}

std::uint64_t clock_scale() noexcept { return scale.load(std::memory_order_relaxed); }  // a number

std::uint64_t nanoseconds_of(std::uint64_t ticks) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(wide{ticks} * scale.load(std::memory_order_relaxed) >> 32);  // a number
}

}  // namespace ulexite::detail
