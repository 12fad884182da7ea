#pragma once

// The frames of a computation that was left (switch.hpp), read without touching its stack or its thread.

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <span>

// Calls visit(data) so that any unwinder takes it for called by the computation that was left in `frame`
// (context::frame): _Unwind_Backtrace or backtrace(3), called there, gives that computation's frames behind two of
// their own. It runs on the caller's stack. What was left must stay as it is meanwhile.
extern "C" void ulexite_call_below(void* frame, void (*visit)(void*), void* data);

namespace ulexite::detail {

// The return addresses of the computation that was left in `frame`, innermost first; how many. Any thread.
std::size_t unwind(void* frame, std::span<void*> addresses) noexcept;

}  // namespace ulexite::detail
