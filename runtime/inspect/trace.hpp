#pragma once

#include <ulexite/runtime/trace.hpp>

#include <fstream>
#include <iosfwd>
#include <memory>

namespace ulexite::detail {

class runtime_state;

// False: a trace is being recorded already. Throws std::bad_alloc.
bool start_trace(runtime_state& home, const trace_options& options);
void stop_trace(runtime_state& home) noexcept;
// False: nothing was ever recorded.
bool write_trace(std::ostream& out, runtime_state& home);

// Records the whole life of a runtime, and writes it at the end to the file that the environment variable ULEXITE_TRACE
// names.
class trace_file {
 public:
  // Null if the environment names no file, if another runtime has it, or if it cannot be written, which is reported on
  // stderr.
  static std::unique_ptr<trace_file> of_environment(runtime_state& home);
  ~trace_file();
  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;

 private:
  trace_file(runtime_state& home, std::ofstream&& out) : home_(home), out_(std::move(out)) {}

  runtime_state& home_;
  std::ofstream out_;
};

}  // namespace ulexite::detail
