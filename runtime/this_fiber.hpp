#pragma once

#include <ulexite/runtime/wait/suspend.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>

// Functions for the calling fiber. The functions that wait work on a plain thread too, and block it.
namespace ulexite::this_fiber {

// The fiber's number, unique in the process; 0 on a plain thread.
[[nodiscard]] std::uint64_t id() noexcept;

// The fiber's name, empty if it has none. Valid until the fiber ends or is renamed.
[[nodiscard]] std::string_view name() noexcept;
// Names the fiber, for reports. The name ends at its first NUL. No effect on a plain thread. Throws std::bad_alloc.
void set_name(std::string_view name);

// A pointer of the user for each fiber, null at first. It is for the data that a language or framework keeps per fiber.
// It is faster than fiber_local, and for_each_fiber shows it. On a plain thread the first form returns null, and the
// second throws usage_error. The first call of the second form may throw std::bad_alloc.
[[nodiscard]] void* user_data() noexcept;
void set_user_data(void* data);

// Lets the other runnable fibers of this worker run first. Not a cancellation point. Returns immediately if there are
// none. Does nothing under a no_suspend_scope and in a fiber's stop callbacks. On plain threads and in jobs yields the
// thread.
void yield() noexcept;

// Whether the fiber was asked to stop, or a child's failure cancels the body of its scope. False on a plain thread.
// Never waits.
[[nodiscard]] inline bool stop_requested() noexcept { return detail::this_agent().word.stop_requested(); }
// A token of the requests to stop the fiber, also of its runtime's. For std::stop_callback, and for code that takes a
// token. An empty token on a plain thread. Throws std::bad_alloc.
[[nodiscard]] std::stop_token get_stop_token();
// Yields if the scheduler asked for it, because other fibers have waited for this worker for about 10 ms; otherwise
// costs about a nanosecond. For loops that compute, and for the hooks of an interpreter. Not a cancellation point. No
// effect on a plain thread.
void yield_if_requested() noexcept;
// The former name.
[[deprecated("use yield_if_requested")]] inline void make_room() noexcept { yield_if_requested(); }

// The nearest deadline of the caller's waits, also an inherited one; nullopt if there is none. See deadline_scope.
[[nodiscard]] std::optional<steady_clock::time_point> deadline() noexcept;
// A cancellation point without a wait. Throws operation_cancelled if the fiber was asked to stop, deadline_exceeded if
// its deadline has passed. Never yields: a loop that calls only this keeps its worker.
void check();

// The sizes of a fiber's stack, in bytes.
struct stack_info {
  std::size_t size = 0;        // usable by the fiber
  std::size_t used = 0;        // in use by the caller; on a foreign stack 0, or as it last left its own
  std::size_t high_water = 0;  // the largest part that was ever touched, in whole pages
};
// The stack of the calling fiber. Makes a system call. Zeros on a plain thread.
[[nodiscard]] stack_info stack() noexcept;

}  // namespace ulexite::this_fiber

namespace ulexite::detail {
void sleep_until(std::int64_t deadline);
}

namespace ulexite::this_fiber {

// Waits for a duration, or until a point in time. A cancellation point: throws operation_cancelled. Never early; late
// by some 50 us on an idle machine. If the time has passed already, yields.
inline void sleep_for(relative_timeout time) { detail::sleep_until(time.deadline()); }
inline void sleep_until(absolute_timeout time) { detail::sleep_until(time.deadline()); }

}  // namespace ulexite::this_fiber
