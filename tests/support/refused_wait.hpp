#pragma once

// Waits that no_suspend_scope forbids.

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/no_suspend.hpp>

#include <gtest/gtest.h>

#include <source_location>
#include <string>

namespace ulexite::test {

// In a fiber, under a no_suspend_scope: the operation throws. Its text names the wait and the place that forbids it,
// which is the caller's. The fiber can continue.
template <class F>
void expect_refused(F operation, const std::string& words,
                    std::source_location where = std::source_location::current()) {
  try {
    const no_suspend_scope stays(where);
    operation();
    ADD_FAILURE() << "it should not have returned: " << words;
  } catch (const usage_error& refused) {
    const std::string text = refused.what();
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_NE(text.find("no_suspend_test.cpp:" + std::to_string(where.line())), std::string::npos) << text;
  }
}

}  // namespace ulexite::test
