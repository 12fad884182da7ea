#pragma once

// How long fibers waited for one worker, and how long each then ran there. Counted only while the worker records.
//
// State
//   buckets_, sum_   counters: written by the worker, read by any thread.
//   since_           the time at which the present run began. The worker only.

#include <ulexite/base/counter.hpp>
#include <ulexite/fiber/fiber.hpp>
#include <ulexite/runtime/metrics.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

// The processor's clock, which a dispatch can afford.
inline std::uint64_t clock_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

// Measures its rate. The first call in a process takes a millisecond for that.
void measure_clock() noexcept;
// 2^32 times the nanoseconds of a tick. Called after measure_clock.
std::uint64_t clock_scale() noexcept;
std::uint64_t nanoseconds_of(std::uint64_t ticks) noexcept;
// A time in 32 bits, for differences of up to half a minute. It has steps of 16 ns, because a fiber's record has room
// for 32 bits (resumable_job::wait_since).
inline std::uint32_t time_stamp(std::uint64_t ticks) noexcept {
  return static_cast<std::uint32_t>(nanoseconds_of(ticks) >> 4);
}
inline std::uint64_t nanoseconds_between(std::uint32_t earlier, std::uint32_t later) noexcept {
  const std::uint32_t steps = later - earlier;
  return steps <= INT32_MAX ? std::uint64_t{steps} << 4 : 0;  // the clocks of two processors may differ a little
}

inline void stamp_runnable(resumable_job& fiber) noexcept { fiber.stamp_runnable(time_stamp(clock_ticks())); }

class time_counter {
 public:
  // The worker.
  void add(std::uint64_t nanoseconds) noexcept {
    const auto first = static_cast<std::uint64_t>(duration_histogram::bound(0).count());
    const auto bucket = static_cast<std::size_t>(std::bit_width((nanoseconds - (nanoseconds != 0)) / first));
    buckets_[bucket < duration_histogram::size ? bucket : duration_histogram::size - 1].add();
    sum_.add(nanoseconds);
  }
  // Any thread.
  void add_to(duration_histogram& total) const noexcept {
    for (std::size_t i = 0; i < duration_histogram::size; ++i) total.counts[i] += buckets_[i].get();
    total.sum += std::chrono::nanoseconds(sum_.get());
  }

 private:
  counter buckets_[duration_histogram::size];
  counter sum_;
};

class run_times {
 public:
  // The worker: the present run ends, and if `next`, another one begins.
  void switched(std::uint64_t ticks, bool next) noexcept {
    if (since_ != 0) run_.add(nanoseconds_of(ticks - since_));
    since_ = next ? ticks : 0;
  }
  void waited(std::uint64_t nanoseconds) noexcept { queue_delay_.add(nanoseconds); }
  // The worker: ends the recording.
  void stop() noexcept { since_ = 0; }

  // Any thread.
  void add_to(runtime_times& total) const noexcept {
    queue_delay_.add_to(total.queue_delay);
    run_.add_to(total.run);
  }

 private:
  time_counter queue_delay_, run_;
  std::uint64_t since_ = 0;
};

}  // namespace ulexite::detail
