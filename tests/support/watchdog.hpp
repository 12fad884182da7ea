#pragma once

// The one bound of every wait in the tests, and the ways to wait within it.

#include <ulexite/base/atomics.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <algorithm>
#include <chrono>

namespace ulexite::test {

inline constexpr bool sanitized = ULEXITE_ASAN || ULEXITE_TSAN;

// How long anything may take before it counts as hanging: much longer than it does take on a machine that is busy with
// other things. ctest's TIMEOUT is longer, so that the watchdog can say what hung.
inline constexpr unsigned bound_seconds = 300;

// Ends the process with a line that says what hung, and what `report` prints, unless it is destroyed in time. One at a
// time. It works by SIGALRM, so it makes no thread that a fork or a measurement would meet.
class watchdog {
 public:
  explicit watchdog(const char* what, void (*report)() = nullptr, unsigned seconds = bound_seconds);
  ~watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
};

// Lets others run until `condition()`. The watchdog is the bound. In fibers and on plain threads.
template <class Condition>
void wait_until(Condition condition) {
  while (!condition()) this_fiber::yield();
}

// The same without giving up the worker: the computing fiber that others have to live with. False when `time` was over.
template <class Condition>
bool hog_until(Condition condition, std::chrono::nanoseconds time = std::chrono::seconds(100)) {
  for (const auto end = ulexite::steady_clock::now() + time; !condition(); detail::cpu_relax())
    if (ulexite::steady_clock::now() > end) return false;
  return true;
}

// How often something is repeated: less often under a sanitizer.
constexpr int times(int count) { return sanitized ? (count + 9) / 10 : count; }

// The number of fibers at a time. ThreadSanitizer supports few, and each costs AddressSanitizer half a millisecond.
constexpr int fibers(int count) { return std::min(count, ULEXITE_TSAN ? 150 : ULEXITE_ASAN ? 2000 : count); }

}  // namespace ulexite::test
