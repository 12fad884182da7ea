#pragma once

#include <ulexite/base/standard.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ulexite {

// One number of a runtime.
struct runtime_metric {
  const char* name = nullptr;  // as the member of runtime_metrics; for Prometheus "ulexite_" goes before it
  const char* help = nullptr;  // what it counts
  bool grows = false;          // whether it is a counter, which only grows
  std::uint64_t value = 0;     // when it was read
};

// The numbers of a runtime. They only grow, except those under "now".
struct runtime_metrics {
  // now
  std::size_t workers = 0;           // threads started, without those that sleep above the limit (resize)
  std::size_t workers_sleeping = 0;  // of these
  std::size_t fibers_live = 0;       // spawned and not ended
  std::size_t queued_outside = 0;    // runnable, in the shared queue of outside threads and overflow
  std::size_t blocking_threads = 0;  // of the pool behind blocking(), idle ones too
  std::size_t blocking_queued = 0;   // calls that wait for one of them
  std::size_t channel_bytes = 0;     // in blocks of more than 64 KiB, of all channels of the process

  std::uint64_t fibers_spawned = 0;         // since the start
  std::uint64_t fibers_ended = 0;           // since the start
  std::uint64_t dispatches = 0;             // times that a worker began to run a fiber or job
  std::uint64_t thread_starts_refused = 0;  // times that the system refused a thread
  std::uint64_t stacks_refused = 0;       // times that memory for a stack was refused: the fiber waits 10 ms and tries
                                          // again
  std::uint64_t accepts_refused = 0;      // times that a fiber's accept lacked descriptors or memory: it tries again
  std::uint64_t stack_bytes_trimmed = 0;  // returned to the system from stacks of fibers that waited for long

  // Of the scheduler's ways. They may change, with these ways.
  std::size_t workers_searching = 0;  // now: workers that look for work
  std::uint64_t starts_in_place = 0;  // of the dispatches: fresh fibers and jobs that ran on the stack of an ended one
  std::uint64_t steals = 0;           // successful thefts, each of one or more
  std::uint64_t overflows = 0;        // the oldest of a full queue were moved to the shared queue
  std::uint64_t parks = 0;            // a worker went to sleep
  std::uint64_t wakes = 0;            // a sleeping worker was woken by another thread, or a new one started
  std::uint64_t polls = 0;            // turns of the event loop
  std::uint64_t events = 0;           // reported by these turns
  union {
    std::uint64_t workers_retaken = 0;  // times that others had to take the work of a worker that did not switch
    [[deprecated("use workers_retaken")]] std::uint64_t hogs_relieved;  // the former name
  };
  union {
    std::uint64_t poller_handoffs = 0;  // times that the monitor woke or started a worker to watch the event loop
    [[deprecated("use poller_handoffs")]] std::uint64_t polls_rescued;  // the former name
  };
  union {
    std::uint64_t lost_wakeups = 0;  // runnable work was found while every worker slept: a defect if not 0
    [[deprecated("use lost_wakeups")]] std::uint64_t rescued_wakeups;  // the former name
  };

  // All numbers with their names, as to_string and write_prometheus write them. A program that goes through this list
  // stays right when there are others. Throws std::bad_alloc.
  [[nodiscard]] std::vector<runtime_metric> list() const;
};

// The counters as text: "name value", a line each.
std::string to_string(const runtime_metrics& metrics);

// A histogram of durations.
struct duration_histogram {
  static constexpr std::size_t size = 28;  // buckets
  // The longest duration that a bucket counts: 128 ns, 256 ns and so on to 8.6 s. The last bucket counts all longer
  // ones. `bucket` must be below `size`.
  static constexpr std::chrono::nanoseconds bound(std::size_t bucket) noexcept {
    return std::chrono::nanoseconds(std::int64_t{128} << bucket);
  }

  std::array<std::uint64_t, size> counts{};  // by bucket: the durations above the previous bound, and not above its own
  std::chrono::nanoseconds sum{0};           // of all times

  // The number of durations.
  [[nodiscard]] std::uint64_t count() const noexcept;
  // The smallest bound that at least this part of the times, from 0 to 1, did not exceed. 0 ns if there are no times.
  // The largest bound if even that was exceeded too often.
  [[nodiscard]] std::chrono::nanoseconds within(double part) const noexcept;
};

// How long fibers had to wait for a worker, and then ran. Counted while runtime_options::measure is set, or a trace is
// recorded, on all workers together.
struct runtime_times {
  duration_histogram queue_delay;  // from being made runnable to running; above 34 s it counts as less
  duration_histogram run;          // until the fiber, or job, left its worker
};

// The times as text: "name value", a line each. The values are the number, the sum, and the bounds of 50, 90, 99 and
// 99.9 per cent, in nanoseconds.
std::string to_string(const runtime_times& times);

// Options of runtime::write_prometheus: additions to the counters.
struct prometheus_options {
  // Counts the fibers that have waited for longer than this, by place of spawn and place of wait. A count that grows
  // shows a leak. It takes the backtrace of each waiting fiber, some us each. 0: no such counts.
  std::chrono::milliseconds long_wait{0};
  // The largest number of such pairs of places: the pairs with the most fibers. The others count as one, "other".
  std::size_t max_places = 50;
};

}  // namespace ulexite
