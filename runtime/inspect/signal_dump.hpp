#pragma once

// Dumps when the process gets a signal: runtime_options::dump_signal, or SIGQUIT if the environment has ULEXITE_DUMP.
// The handler only writes to an eventfd, so it may interrupt anything. One thread of the process, which lives as long as
// a runtime wants this, waits there and writes.

#include <cstddef>

namespace ulexite::detail {

class runtime_state;

// While it lives, that runtime is dumped at the signal; of several runtimes the first one's signal counts for all. Throws
// std::system_error when the machine refuses what it takes.
class signal_dump {
 public:
  signal_dump(runtime_state& home, int signal);
  ~signal_dump();
  signal_dump(const signal_dump&) = delete;
  signal_dump& operator=(const signal_dump&) = delete;

  // The signal that these options and the environment ask for; 0: none.
  static int wanted(int option) noexcept;
  // The threads that wait for a signal, 0 or 1. A hint.
  static std::size_t threads() noexcept;

 private:
  runtime_state& home_;
};

// Appends `text` to the file that the environment names in ULEXITE_DUMP, or writes it to stderr if there is none, or it
// cannot be written.
void write_report(const char* text, std::size_t size) noexcept;

}  // namespace ulexite::detail
