// Assertions of doctest in runs.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <ulexite.hpp>
#include <ulexite/testing/doctest.hpp>
#include <ulexite/testing/explore.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>

namespace {

using ulexite::testing::explore;
using ulexite::testing::find_failure;

// Calls `look` with the other fiber's number, at any time.
void race(const std::function<void(int)>& look) {
  int number = 0;
  ulexite::task_group both;
  both.spawn([&] { look(number); });
  both.spawn([&] { number = 1; });
  both.wait();
}

// doctest counts the failures in runs, so the test has to fail.
#define FAILING_TEST_CASE(name, words, ...)                               \
  TEST_CASE(name* doctest::should_fail()) {                               \
    const auto found = find_failure({}, [] { race(__VA_ARGS__); });       \
    if (!found.failure || found.failure->replay == "list:") std::abort(); \
    if (found.failure->reason.find(words) == std::string::npos) {         \
      std::puts(found.failure->reason.c_str());                           \
      std::abort();                                                       \
    }                                                                     \
  }

FAILING_TEST_CASE("check", "doctest.cpp:", [](int number) { CHECK(number == 0); })
FAILING_TEST_CASE("values", "CHECK( number == 0 ): 1 == 0", [](int number) { CHECK(number == 0); })
FAILING_TEST_CASE("require", "REQUIRE( number == 0 ): 1 == 0", [](int number) { REQUIRE(number == 0); })
FAILING_TEST_CASE("exception", "late", [](int number) {
  CHECK_NOTHROW([=] {
    if (number == 1) throw std::runtime_error("late");
  }());
})
FAILING_TEST_CASE("fail", "too late", [](int number) {
  if (number == 1) FAIL("too late");
})

TEST_CASE("other assertions do not fail a run") {
  CHECK(explore({.schedules = 50}, [] {
          race([](int number) {
            CHECK(number <= 1);
            WARN(number == 0);
            MESSAGE("seen");
          });
        }).schedules == 50);
}

TEST_CASE("an exploration that fails, fails the test" * doctest::should_fail()) {
  explore([] { race([](int number) { CHECK(number == 0); }); });
}

}  // namespace
