#pragma once

#include <ulexite/base/standard.hpp>

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
  std::uint64_t stacks_refused = 0;   // times that memory for a stack was refused: the fiber waits 10 ms and tries
                                      // again
  std::uint64_t hogs_relieved = 0;    // times that the monitor moved a fiber away from a worker that did not switch
  std::uint64_t polls_rescued = 0;    // times that the monitor woke or started a worker to watch the event loop
  std::uint64_t rescued_wakeups = 0;  // runnable work was found while every worker slept: a defect if not 0
};

// The counters as text: "name value", a line each.
std::string to_string(const runtime_metrics& metrics);

}  // namespace ulexite
