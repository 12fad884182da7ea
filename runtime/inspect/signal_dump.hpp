#pragma once

// Writes dumps when the process gets a signal: runtime_options::dump_signal, or SIGQUIT if the environment has
// ULEXITE_DUMP. The handler only writes to an eventfd, so it may interrupt any code. One thread of the process waits
// there and writes the dump. It exists as long as a runtime needs it.

#include <cstddef>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace ulexite::detail {

class runtime_state;

// While it exists, the runtime is dumped at the signal. Of several runtimes the first one's signal counts for all.
// Throws std::system_error if the system refuses a thread or a descriptor.
class signal_dump {
 public:
  signal_dump(runtime_state& home, int signal);
  ~signal_dump();
  signal_dump(const signal_dump&) = delete;
  signal_dump& operator=(const signal_dump&) = delete;

  // The signal that the option or the environment requests; 0: none.
  static int wanted(int option) noexcept;
  // The threads that wait for a signal, 0 or 1. A hint.
  static std::size_t threads() noexcept;

 private:
  runtime_state& home_;
};

// Appends `text` to the file that the environment variable ULEXITE_DUMP names. Writes it to stderr if there is none, or
// it cannot be written.
void write_report(std::string_view text) noexcept;
// The same with what write(stream) writes, whose numbers are those of the locale "C".
template <class Write>
void report_plainly(Write&& write) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  write(text);
  write_report(std::move(text).str());
}

}  // namespace ulexite::detail
