#pragma once

// Reads the frames of a suspended computation (switch.hpp), without changing its stack or its thread.

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <span>

// Calls visit(data) so that any unwinder takes it for a call of the computation that was suspended in `frame`
// (context::frame). _Unwind_Backtrace or backtrace(3), called there, returns the computation's frames after two own
// frames. visit runs on the caller's stack. The computation must stay suspended during the call.
extern "C" void ulexite_call_below(void* frame, void (*visit)(void*), void* data);

namespace ulexite::detail {

// Writes the return addresses of the computation that was suspended in `frame`, innermost first. Returns their number.
// Any thread.
std::size_t unwind(void* frame, std::span<void*> addresses) noexcept;

}  // namespace ulexite::detail
