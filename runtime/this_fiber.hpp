#pragma once

#include <ulexite/runtime/wait/suspend.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>

// The calling fiber. What waits here works on a plain thread too, and blocks it.
namespace ulexite::this_fiber {

// Its number, unique in the process; 0 on a plain thread.
[[nodiscard]] std::uint64_t id() noexcept;

// Its name, empty if it has none. Valid until the fiber ends or is renamed.
[[nodiscard]] std::string_view name() noexcept;
// Names it, for reports. Nothing on a plain thread. Throws std::bad_alloc.
void set_name(std::string_view name);

// One pointer of the user's for each fiber, null at first: for what a language or framework keeps per fiber. Faster than
// fiber_local, and seen by for_each_fiber. On a plain thread: get gives null, set throws usage_error. set throws
// std::bad_alloc the first time.
[[nodiscard]] void* user_data() noexcept;
void set_user_data(void* data);

// Lets the other runnable fibers of this worker run first. Not a cancellation point. Returns at once when there is
// none.
void yield() noexcept;

// Whether the fiber was asked to stop. False on a plain thread.
[[nodiscard]] inline bool stop_requested() noexcept { return detail::this_agent().word.stop_requested(); }
// A token of the requests to stop it, the runtime's too: for std::stop_callback, and for code that takes one. An empty
// token on a plain thread. Throws std::bad_alloc.
[[nodiscard]] std::stop_token get_stop_token();
// Lets others run if they have waited for this worker for long (some 10 ms); else costs about a nanosecond. For loops that
// compute, and for the hooks of an interpreter. Not a cancellation point. Nothing on a plain thread.
void make_room() noexcept;

// The nearest deadline that bounds the caller's waits, also one that it has inherited; nullopt without one. See
// deadline_scope.
[[nodiscard]] std::optional<steady_clock::time_point> deadline() noexcept;
// Throws operation_cancelled if it was asked to stop, deadline_exceeded if its deadline is over: a cancellation point
// without a wait. It never yields: a loop that does nothing else keeps the worker for itself.
void check();

// Bytes of a fiber's stack.
struct stack_info {
  std::size_t size;        // all that the fiber can use
  std::size_t used;        // in use by the caller
  std::size_t high_water;  // the most that was ever touched, in whole pages
};
// The stack of the calling fiber. Makes a system call. Zeros on a plain thread.
[[nodiscard]] stack_info stack() noexcept;

}  // namespace ulexite::this_fiber

namespace ulexite::detail {
void sleep_until(std::int64_t deadline);
}

namespace ulexite::this_fiber {

// Waits for a time to pass. A cancellation point: throws operation_cancelled. Never early; late by some 50 us on an
// idle machine. A time that is over already yields.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> time) {
  detail::sleep_until(detail::deadline_after(time));
}
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> time) {
  detail::sleep_until(detail::deadline_at(time));
}

}  // namespace ulexite::this_fiber
