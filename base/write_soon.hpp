#pragma once

#include <ulexite/base/standard.hpp>

#include <string_view>

namespace ulexite::detail {

// Writes a report. It waits while a pipe, terminal or socket takes the text, and for `patience` ms if it does not, so
// that a reader that has stopped does not stop the program. It may wait longer if another process fills the pipe just
// then, and the kernel knows no RWF_NOWAIT for pipes. False: the rest was left out. Async-signal-safe. Any thread.
bool write_soon(int fd, std::string_view text, int patience = 300) noexcept;

// The same to stderr. If something was left out, the next text that it takes begins with "report cut"; until then
// nothing waits for it.
void write_to_stderr(std::string_view text) noexcept;

}  // namespace ulexite::detail
