#pragma once

// A snapshot of a runtime: the workers, the fibers in groups, and which fiber waits for which.

#include <ulexite/runtime/dump.hpp>
#include <ulexite/runtime/inspect/wait_graph.hpp>
#include <ulexite/runtime/worker/inspection.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace ulexite::detail {

inline constexpr std::size_t most_frames = 64;
// The depth without the three outermost frames, which all stacks have: stack_main, ulexite_context_main,
// ulexite_context_entry.
constexpr std::size_t without_entry(std::size_t depth) noexcept {
  return depth > 3 && depth < most_frames ? depth - 3 : depth;
}

struct worker_report {
  std::size_t index = 0;
  bool busy = false;             // it is not parked
  fiber_record runs;             // number 0: no fiber
  std::uint64_t dispatches = 0;  // since the start
  std::size_t queued = 0;        // runnable items in its queue
  std::uint32_t unswitched = 0;  // milliseconds since the monitor saw it switch; 0 below two ticks
  bool stuck = false;            // for a second at least
  std::vector<void*> frames{};   // of a stuck one, if they were wanted
};

// A thread that runs a blocking call, or a plain thread that waits for an object of this library.
struct thread_report {
  int number = 0;               // the kernel's
  fiber_record fiber;           // the caller, number 0: it has given up; or the plain thread's wait, as of a fiber
  std::uint32_t time = 0;       // milliseconds since the call, or the wait, began
  std::vector<void*> frames{};  // if it is longer than a second, and they were wanted
};

// Fibers in the same state, spawned at the same place, that wait for the same kind of thing with the same backtrace.
struct fiber_group {
  static constexpr std::size_t most_others = 7;

  fiber_record oldest;  // the fiber with the longest wait
  std::vector<void*> frames;
  std::size_t count = 0;
  std::uint32_t least_waited = 0;       // milliseconds
  std::uint64_t waited = 0;             // milliseconds, the sum of all
  std::size_t long_waits = 0;           // the number of long waits
  bool any_timed = false;               // a timer ends the wait of one of them
  std::vector<std::uint64_t> others{};  // numbers of some more
};

struct runtime_report {
  runtime_metrics metrics;
  std::vector<worker_report> workers;
  std::vector<thread_report> calls;               // that run on the pool, the oldest first
  std::vector<thread_report> waiting_threads;     // the oldest first; those of the whole process
  std::vector<fiber_group> groups;                // groups that wait come first, the oldest first
  std::array<std::size_t, wait_kinds> waiting{};  // the number of waiting fibers of each kind
  std::size_t left_out = 0;                       // fibers in no group, because there were too many groups
  std::vector<std::string> findings;              // the stuck workers first, in their order
  std::vector<wait_edge> edges;                   // some of them
  bool tracing = false;                           // a trace is being recorded
  bool has_circle = false;                        // some fibers wait for each other, and for nothing else
  bool has_certain_circle = false;                // the same, and not even a request to stop ends one of these waits
  bool fibers_unseen = false;                     // the kernel has no membarrier
};

// Inspects one fiber after the other. Any thread; a calling fiber does not switch here. `long_wait`: a wait of more
// milliseconds counts as long. Throws std::bad_alloc.
runtime_report collect(runtime_state& rt, const dump_options& options, std::uint32_t long_wait = 0);

// What a worker does now.
worker_report look_at(const scheduler& worker);
// The addresses of the functions that a thread is in, innermost first; none if it cannot take them.
std::vector<void*> frames_of(int thread);

void write_text(std::ostream& out, const runtime_report& report);
// Writes only the findings and the fibers of a report.
void write_fibers(std::ostream& out, const runtime_report& report);
void write_prometheus(std::ostream& out, const runtime_report& report);
// Writes the number of long waits for each place.
void write_long_waits(std::ostream& out, const runtime_report& report, std::size_t max_places);
// Writes nothing if nothing was measured.
void write_prometheus(std::ostream& out, const runtime_times& times);
void write_json(std::ostream& out, const runtime_report& report);
// Writes a line for each frame, without the innermost ones, which are the library's path into a wait.
void write_frames(std::ostream& out, std::span<void* const> frames);

// "fiber #7 "parser"".
std::string describe(const fiber_record& fiber);
// "waits 3 ms for mutex 0x7f...", "could run", "runs", "not started yet"; "(the least 1 ms)" too if that differs.
std::string describe_state(const fiber_record& fiber, std::uint32_t least_waited);
// "worker 0 has not switched for 2.0 s: it runs fiber #7; 0 queued behind it".
std::string describe_stuck(const worker_report& worker);
// "server.cpp:12 in main", or "parse(int) (module+0x1234)", or empty.
std::string describe(spawn_place where);
// "for mutex "sessions" 0x7f...": the text after "waits".
std::string describe_wait(const fiber_record& fiber);
// "TCP, here 127.0.0.1:80, peer 127.0.0.1:41412", or what else has that number now.
std::string describe_descriptor(int fd);
// "parse(int) (module+0x1234)": addr2line -e module takes the offset.
std::string describe_frame(const void* address);
// "3 ms", "4.2 s", "3 min".
std::string describe_time(std::uint32_t milliseconds);

}  // namespace ulexite::detail
