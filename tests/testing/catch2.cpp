// Assertions of Catch2 in runs.

#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#include <ulexite.hpp>
#include <ulexite/testing/catch2.hpp>
#include <ulexite/testing/explore.hpp>

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

std::string reason_of(const std::function<void()>& body) {
  const auto found = find_failure({}, body);
  return found.failure ? found.failure->reason : "none";
}

TEST_CASE("a failed assertion fails its run, and not the test") {
  using Catch::Contains;
  CHECK_THAT(reason_of([] { race([](int number) { CHECK(number == 0); }); }),
             Contains("catch2.cpp:") && Contains("CHECK( number == 0 ): 1 == 0"));
  CHECK_THAT(reason_of([] { race([](int number) { REQUIRE(number == 0); }); }),
             Contains("REQUIRE( number == 0 ): 1 == 0"));
  CHECK_THAT(reason_of([] {
               race([](int number) {
                 CHECK_THROWS([=] {
                   if (number == 0) throw 1;
                 }());
               });
             }),
             Contains("no exception"));
  CHECK_THAT(reason_of([] {
               race([](int number) {
                 CHECK_NOTHROW([=] {
                   if (number == 1) throw std::runtime_error("late");
                 }());
               });
             }),
             Contains("exception: late"));
  CHECK_THAT(reason_of([] {
               race([](int number) {
                 if (number == 1) FAIL("too late");
               });
             }),
             Contains("too late"));
  const auto found = find_failure({}, [] { race([](int number) { CHECK(number == 0); }); });
  CHECK(found.failure->replay != "list:");
}

TEST_CASE("other assertions do not fail a run") {
  CHECK(explore({.schedules = 50}, [] {
          race([](int number) {
            INFO("a message");
            CHECK(number <= 1);
            CHECK_NOFAIL(number == 0);
            SUCCEED();
          });
        }).schedules == 50);
}

TEST_CASE("an exploration that fails, fails the test", "[!shouldfail]") {
  explore([] { race([](int number) { CHECK(number == 0); }); });
}

}  // namespace
