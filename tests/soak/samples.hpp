#pragma once

// The measurements of a soak: the process as the kernel sees it, and latencies.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <vector>

namespace soak {

// Counts by size, eight classes for each doubling, so that a percentile is right to an eighth.
class latencies {
 public:
  void add(std::chrono::nanoseconds time) {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count() / 1000, 8));
    const auto doublings = static_cast<std::size_t>(std::bit_width(us) - 4);
    counts_[std::min(8 * doublings + ((us >> doublings) & 7), counts_.size() - 1)].fetch_add(
        1, std::memory_order_relaxed);  // counter
  }

  // In microseconds, of what was added since the last call.
  long take_p99() {
    std::array<std::uint64_t, classes> taken{};
    std::uint64_t all = 0, seen = 0;
    for (std::size_t i = 0; i < classes; ++i)
      all += taken[i] = counts_[i].exchange(0, std::memory_order_relaxed);  // counter
    for (std::size_t i = 0; i < classes; ++i)
      if ((seen += taken[i]) * 100 >= all * 99) return static_cast<long>((8 + i % 8) << (i / 8));
    return 0;
  }

 private:
  static constexpr std::size_t classes = 256;
  std::array<std::atomic<std::uint64_t>, classes> counts_{};
};

struct sample {
  long rss = 0, descriptors = 0, threads = 0;  // KiB; how many
  long echo = 0, timers = 0;                   // 99th percentiles, us
};

inline long entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

inline sample take(latencies& echo, latencies& timers) {
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return {pages * ::sysconf(_SC_PAGESIZE) / 1024, entries_of("/proc/self/fd"), entries_of("/proc/self/task"),
          echo.take_p99(), timers.take_p99()};
}

// The first third warms up. The median of the last third may exceed the median of the second only by `factor` and
// `more`.
class record {
 public:
  void add(const sample& now) { samples_.push_back(now); }

  [[nodiscard]] bool judge() const {
    const bool flat[] = {is_flat("rss_kib", &sample::rss, 1.1, 1024),
                         is_flat("descriptors", &sample::descriptors, 1, 5), is_flat("threads", &sample::threads, 1, 2),
                         is_flat("echo_p99_us", &sample::echo, 2, 5'000),
                         is_flat("timer_p99_us", &sample::timers, 2, 5'000)};
    return std::ranges::all_of(flat, [](bool each) { return each; });
  }

 private:
  [[nodiscard]] bool is_flat(const char* name, long sample::* what, double factor, long more) const {
    const std::size_t third = samples_.size() / 3;
    const long before = median(what, third, 2 * third), after = median(what, 2 * third, samples_.size());
    const bool flat = static_cast<double>(after) <= factor * static_cast<double>(before) + static_cast<double>(more);
    std::fprintf(stderr, "%-12s %8ld, at last %8ld%s\n", name, before, after, flat ? "" : "  HAS GROWN");
    return flat;
  }

  [[nodiscard]] long median(long sample::* what, std::size_t begin, std::size_t end) const {
    std::vector<long> values;
    for (std::size_t i = begin; i < end; ++i) values.push_back(samples_[i].*what);
    if (values.empty()) return 0;
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
  }

  std::vector<sample> samples_;
};

}  // namespace soak
