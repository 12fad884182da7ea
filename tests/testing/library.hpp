#pragma once

// Shared by the tests that explore the library's own primitives. The shape of each run (modes, times, which fiber is
// cancelled) is chosen by its strategy too.

#include <ulexite/base/sanitizers.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>

namespace ulexite::test {

namespace ux = ulexite;
using namespace std::chrono_literals;
using testing::choose;
using testing::expect;

#if ULEXITE_TSAN || ULEXITE_ASAN
inline constexpr std::size_t usual_schedules = 500;
#else
inline constexpr std::size_t usual_schedules = 10'000;
#endif

// ULEXITE_SCHEDULES in the environment: how many schedules of each.
inline void explore_library(const std::function<void()>& scenario) {
  const char* const wanted = std::getenv("ULEXITE_SCHEDULES");
  const char* const seed = std::getenv("ULEXITE_SEED");
  testing::explore({.schedules = wanted ? std::strtoull(wanted, nullptr, 10) : usual_schedules,
                    .seed = seed ? std::strtoull(seed, nullptr, 10) : 1,
                    .slowness = std::chrono::milliseconds(3)},
                   scenario);
}

inline std::chrono::milliseconds some_time() { return std::chrono::milliseconds(testing::choose(3)); }

struct failure : std::runtime_error {
  failure() : std::runtime_error("a child's own failure") {}
};

// Calls f, and takes a cancellation. True: it has ended.
template <class F>
bool unless_cancelled(F&& f) {
  try {
    f();
    return true;
  } catch (const operation_cancelled&) {
    return false;
  }
}

}  // namespace ulexite::test
