#pragma once

// A runtime that leaves nothing behind, and what an operation fails with: for tests of what uses descriptors.

#include <ulexite/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

namespace ulexite::test {

// Each open descriptor and what it is of, as "5 -> socket:[1234]".
inline std::set<std::string> descriptor_table() {
  std::set<std::string> table;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed_meanwhile;
    const auto target = std::filesystem::read_symlink(entry.path(), closed_meanwhile);
    table.insert(entry.path().filename().string() + " -> " + target.string());
  }
  return table;
}

inline std::size_t open_descriptors() { return descriptor_table().size(); }

// Runs `body` as the main fiber of a new runtime, and ends that: no descriptor stays open, no fiber, and no wake-up was
// lost.
template <class Body>
void run_and_leave_nothing(const runtime_options& options, Body&& body) {
  descriptor_table();  // the first one may open what stays open
  const auto before = descriptor_table();
  {
    runtime rt(options);
    rt.run(std::forward<Body>(body));
    rt.shutdown(shutdown_mode::cancel);
    EXPECT_EQ(rt.metrics().lost_wakeups, 0u);
    EXPECT_EQ(rt.metrics().fibers_live, 0u);
  }
  EXPECT_EQ(descriptor_table(), before);
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
