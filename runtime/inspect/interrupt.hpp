#pragma once

#include <cstddef>
#include <span>

namespace ulexite::detail {

// The addresses at which a thread of this process, and the functions that it is in, stand: innermost first; how many. The
// thread takes them itself, in the handler of SIGURG, and runs on. 0: the program handles that signal, the thread does
// not hear of it, or it could not be done safely there. Waits for some tenths of a second at most. Any thread.
std::size_t unwind_running(int thread, std::span<void*> addresses) noexcept;

}  // namespace ulexite::detail
