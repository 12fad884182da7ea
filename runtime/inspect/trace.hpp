#pragma once

#include <ulexite/runtime/metrics.hpp>
#include <ulexite/runtime/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iosfwd>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ulexite::detail {

class runtime_state;
struct trace_event;

// From now on counts how long fibers wait for a worker, and run. Called once, before any worker runs. Throws
// std::bad_alloc.
void measure_times(runtime_state& rt);
// The same while a tool uses the probes. Called by the monitor, or before it starts.
void poll_probes(runtime_state& rt) noexcept;
// Returns the counts so far.
runtime_times times_of(runtime_state& rt) noexcept;

// Starts a trace. False if a trace is being recorded already. Throws std::bad_alloc.
bool start_trace(runtime_state& rt, const trace_options& options);
void stop_trace(runtime_state& rt) noexcept;
bool is_tracing(runtime_state& rt) noexcept;
// The events of a worker in the last trace. Called with the trace's mutex held. Throws std::bad_alloc.
std::vector<trace_event> recorded_events(const runtime_state& rt, std::size_t worker);
// By the number of a fiber: the number of the fiber that spawned it.
using spawner_map = std::unordered_map<std::uint64_t, std::uint64_t>;
// Adds the spawns among the events of a worker. Throws std::bad_alloc.
void add_spawners(const std::vector<trace_event>& of_worker, spawner_map& spawners);
// Those of the trace that is being recorded; empty if there is none. Throws std::bad_alloc.
spawner_map recorded_spawners(runtime_state& rt);
// Writes the last trace. False if nothing was ever recorded.
bool write_trace(std::ostream& out, runtime_state& rt);

// Records the whole life of a runtime, and writes it at the end to the file that the environment variable ULEXITE_TRACE
// names.
class trace_file {
 public:
  // Null if the environment names no file, if another runtime has it, or if it cannot be written, which is reported on
  // stderr.
  static std::unique_ptr<trace_file> of_environment(runtime_state& rt);
  ~trace_file();
  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;

 private:
  trace_file(runtime_state& rt, std::ofstream&& out) : runtime_(rt), out_(std::move(out)) {}

  runtime_state& runtime_;
  std::ofstream out_;
};

}  // namespace ulexite::detail
