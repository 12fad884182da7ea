#pragma once

// A runtime that leaves nothing behind, and what an operation fails with: for tests of what uses descriptors.

#include <ulexite/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

namespace ulexite::test {

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// Runs `body` as the main fiber of a new runtime, and ends that: no descriptor stays open, no fiber, and no wake-up was
// lost.
template <class Body>
void run_and_leave_nothing(const runtime_options& options, Body&& body) {
  open_descriptors();  // the first one may open what stays open
  const std::size_t before = open_descriptors();
  {
    runtime rt(options);
    rt.run(std::forward<Body>(body));
    rt.shutdown(shutdown_mode::cancel);
    EXPECT_EQ(rt.metrics().rescued_wakeups, 0u);
    EXPECT_EQ(rt.metrics().fibers_live, 0u);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// The code of the std::system_error that `body` throws; none if it throws nothing.
template <class Body>
std::error_code code_of(Body&& body) {
  try {
    body();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}

}  // namespace ulexite::test
