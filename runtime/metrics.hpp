#pragma once

#include <ulexite/base/standard.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ulexite {

// Counters of a runtime. They only grow, except the counters under "now".
struct runtime_metrics {
  // now
  std::size_t workers = 0;            // threads started
  std::size_t workers_sleeping = 0;   // of these
  std::size_t workers_searching = 0;  // of these
  std::size_t fibers_live = 0;        // spawned and not ended
  std::size_t queued_outside = 0;     // runnable, in the shared queue of outside threads and overflow

  std::size_t blocking_threads = 0;  // of the pool behind blocking(), idle ones too
  std::size_t blocking_queued = 0;   // calls that wait for one of them

  std::uint64_t fibers_spawned = 0;         // since the start
  std::uint64_t fibers_ended = 0;           // since the start
  std::uint64_t dispatches = 0;             // times that a worker began to run a fiber or job
  std::uint64_t starts_in_place = 0;        // of these: fresh fibers that ran on the stack of an ended one, without a
                                            // switch
  std::uint64_t steals = 0;                 // successful thefts, each of one or more
  std::uint64_t overflows = 0;              // half of a full queue was moved to the shared queue
  std::uint64_t parks = 0;                  // a worker went to sleep
  std::uint64_t wakes = 0;                  // a sleeping worker was woken by another thread, or a new one started
  std::uint64_t polls = 0;                  // turns of the event loop
  std::uint64_t events = 0;                 // reported by these turns
  std::uint64_t thread_starts_refused = 0;  // times that the system refused a thread
  std::uint64_t stacks_refused = 0;       // times that memory for a stack was refused: the fiber waits 10 ms and tries
                                          // again
  std::uint64_t hogs_relieved = 0;        // times that the monitor moved a fiber away from a worker that did not switch
  std::uint64_t polls_rescued = 0;        // times that the monitor woke or started a worker to watch the event loop
  std::uint64_t stack_bytes_trimmed = 0;  // returned to the system from stacks of fibers that waited for long
  std::uint64_t rescued_wakeups = 0;      // runnable work was found while every worker slept: a defect if not 0
};

// The counters as text: "name value", a line each.
std::string to_string(const runtime_metrics& metrics);

// How often something took how long.
struct duration_histogram {
  static constexpr std::size_t size = 28;  // buckets
  // The longest time that a bucket counts: 128 ns, 256 ns and so on to 8.6 s. The last one counts all that is longer.
  static constexpr std::chrono::nanoseconds bound(std::size_t bucket) noexcept {
    return std::chrono::nanoseconds(std::int64_t{128} << bucket);
  }

  std::array<std::uint64_t, size>
      counts{};                     // by bucket: how often it was longer than the bound before, and not than its own
  std::chrono::nanoseconds sum{0};  // of all times

  // How often it was.
  [[nodiscard]] std::uint64_t count() const noexcept;
  // The least bound that so great a part of the times kept, from 0 to 1; 0 ns if there are none, and the largest bound if
  // no bound was kept.
  [[nodiscard]] std::chrono::nanoseconds within(double part) const noexcept;
};

// How long fibers had to wait for a worker, and then ran. Counted while runtime_options::measure is set, or a trace is
// recorded, on all workers together.
struct runtime_times {
  duration_histogram queue_delay;  // from being made runnable to running; above 34 s it counts as less
  duration_histogram run;          // until the fiber, or job, let go of its worker
};

// As "name value", a line each: how many, their sum, and within which bound half, 90, 99 and 99.9 per cent were. In
// nanoseconds.
std::string to_string(const runtime_times& times);

// What runtime::write_prometheus writes besides the counters.
struct prometheus_options {
  // How many fibers have waited for longer than this, by place of spawn and place of wait: what grows there leaks. It
  // takes the backtrace of each fiber that waits, some us each. 0: nothing of that.
  std::chrono::milliseconds long_wait{0};
  // Most such pairs of places, those with the most fibers. The others count as one, "other".
  std::size_t most_places = 50;
};

}  // namespace ulexite
