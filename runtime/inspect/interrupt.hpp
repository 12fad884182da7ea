#pragma once

#include <cstddef>
#include <span>

namespace ulexite::detail {

// Stores the present addresses of a thread of this process: of the thread itself, and of the functions that it is in,
// innermost first. Returns their number. The thread takes them itself, in the handler of SIGURG, and continues. Returns
// 0 if the program handles that signal, if the thread does not receive it, or if the unwinding is not safe there.
// Blocks for some tenths of a second at most. Any thread.
std::size_t unwind_running(int thread, std::span<void*> addresses) noexcept;

}  // namespace ulexite::detail
