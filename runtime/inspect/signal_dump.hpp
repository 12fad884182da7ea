#pragma once

// Writes dumps when the process gets a signal: runtime_options::dump_signal, or SIGQUIT if the environment has
// ULEXITE_DUMP. The handler only writes to an eventfd, so it may interrupt any code. One thread of the process waits
// there and writes the dump. It exists as long as a runtime needs it.

#include <cstddef>
#include <functional>
#include <iosfwd>

namespace ulexite::detail {

class runtime_state;

// While it exists, the runtime is dumped at the signal. Of several runtimes the first one's signal counts for all.
// Throws std::system_error if the system refuses a thread or a descriptor, std::invalid_argument for a signal that
// cannot be handled, or of a fault.
class signal_dump {
 public:
  signal_dump(runtime_state& rt, int signal);
  ~signal_dump();
  signal_dump(const signal_dump&) = delete;
  signal_dump& operator=(const signal_dump&) = delete;

  // The signal that the option or the environment requests; 0: none.
  static int wanted(int option) noexcept;
  // The threads that wait for a signal, 0 or 1. A hint.
  static std::size_t threads() noexcept;

 private:
  runtime_state& runtime_;
};

// Reports on stderr if the file that the environment variable ULEXITE_DUMP names cannot be written; makes it if it is
// not there. Called at the start of a runtime, and does nothing the second time. A FIFO or a device is not tried.
void try_report_file() noexcept;

using report_writer = std::function<void(std::ostream&)>;
// Appends what write(stream) writes, with the numbers of the locale "C", to that file. Writes it to stderr if there is
// none, or it cannot be written. If the file's name ends in .json, it becomes a line {"report":"..."}. Never waits long
// for a reader. Throws std::bad_alloc.
void write_report(const report_writer& write);

}  // namespace ulexite::detail
