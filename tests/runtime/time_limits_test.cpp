// The types that convert to the two kinds of timeout, and the resulting deadlines.

#include <ulexite/runtime/wait/time.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <limits>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
using detail::no_deadline;

TEST(TimeLimits, OfOneKindAreNotTakenForTheOther) {
  static_assert(std::convertible_to<std::chrono::hours, relative_timeout>);
  static_assert(std::convertible_to<std::chrono::duration<double>, relative_timeout>);
  static_assert(!std::convertible_to<steady_clock::time_point, relative_timeout>);
  static_assert(!std::convertible_to<int, relative_timeout>);
  static_assert(std::convertible_to<steady_clock::time_point, absolute_timeout>);
  static_assert(std::convertible_to<std::chrono::steady_clock::time_point, absolute_timeout>);
  static_assert(std::convertible_to<std::chrono::system_clock::time_point, absolute_timeout>);
  static_assert(!std::convertible_to<std::chrono::hours, absolute_timeout>);
  static_assert(!std::convertible_to<int, absolute_timeout>);
  EXPECT_EQ(relative_timeout().deadline(), no_deadline);
  EXPECT_EQ(absolute_timeout().deadline(), no_deadline);
}

TEST(TimeLimits, DurationsCountFromTheConversion) {
  const std::int64_t before = detail::now_ns();
  const std::int64_t hour = relative_timeout(1h).deadline(),
                     part = relative_timeout(std::chrono::duration<double>(0.5)).deadline();
  const std::int64_t after = detail::now_ns();
  EXPECT_GE(hour, before + 3'600'000'000'000);
  EXPECT_LE(hour, after + 3'600'000'000'000);
  EXPECT_GE(part, before + 500'000'000);
  EXPECT_LE(part, after + 500'000'000);
}

TEST(TimeLimits, AreRoundedUp) {
  using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
  using half_nanoseconds = std::chrono::duration<std::int64_t, std::ratio<1, 2'000'000'000>>;
  const std::int64_t before = detail::now_ns();
  EXPECT_GT(relative_timeout(picoseconds(1)).deadline(), before);
  EXPECT_EQ(absolute_timeout(std::chrono::time_point<steady_clock, half_nanoseconds>(half_nanoseconds(3))).deadline(),
            2);
}

TEST(TimeLimits, OfThePastAreNow) {
  EXPECT_EQ(relative_timeout(0s).deadline(), 0);
  EXPECT_EQ(relative_timeout(-1h).deadline(), 0);
  EXPECT_EQ(relative_timeout(std::chrono::duration<double>(std::nan(""))).deadline(), 0);
  EXPECT_EQ(absolute_timeout(steady_clock::time_point::min()).deadline(), 0);
  EXPECT_EQ(absolute_timeout(std::chrono::system_clock::now() - 1h).deadline(), 0);
}

TEST(TimeLimits, ThatDoNotFitAreNever) {
  EXPECT_EQ(relative_timeout(std::chrono::hours::max()).deadline(), no_deadline);
  EXPECT_EQ(relative_timeout(std::chrono::nanoseconds::max()).deadline(), no_deadline);
  EXPECT_EQ(relative_timeout(std::chrono::duration<double>(std::numeric_limits<double>::infinity())).deadline(),
            no_deadline);
  EXPECT_EQ(absolute_timeout(std::chrono::time_point<steady_clock, std::chrono::hours>::max()).deadline(), no_deadline);
}

// Their units reach further than nanoseconds do.
TEST(TimeLimits, PointsFarFromNowAreNeverOrNow) {
  using namespace std::chrono;
  const auto first_day = [](int of) { return absolute_timeout(sys_days(year(of) / 1 / 1)).deadline(); };
  const std::int64_t centuries = 24LL * 365 * 200 * 3'600'000'000'000;
  for (const int year : {9999, 2600, 2400, 2300}) EXPECT_GT(first_day(year), centuries) << year;
  for (const int year : {1900, 1700, 1600, 1400, -9999}) EXPECT_EQ(first_day(year), 0) << year;
  EXPECT_EQ(absolute_timeout(sys_seconds::max()).deadline(), no_deadline);
  EXPECT_EQ(absolute_timeout(sys_seconds::min()).deadline(), 0);
  EXPECT_EQ(absolute_timeout(time_point<system_clock, hours>::max()).deadline(), no_deadline);
  EXPECT_EQ(absolute_timeout(time_point<system_clock, hours>::min()).deadline(), 0);
  EXPECT_EQ(absolute_timeout(file_clock::time_point::max()).deadline(), no_deadline);
  EXPECT_EQ(absolute_timeout(file_clock::time_point::min()).deadline(), 0);
  EXPECT_GT(absolute_timeout(system_clock::time_point::max()).deadline(), centuries);
  EXPECT_EQ(absolute_timeout(system_clock::time_point::min()).deadline(), 0);
  const auto month_ahead = system_clock::now() + days(30);
  const auto month = absolute_timeout(month_ahead).deadline() - detail::now_ns();
  EXPECT_LT(std::abs(month - duration_cast<nanoseconds>(days(30)).count()), 100'000'000'000);
}

TEST(TimeLimits, PointsOfOtherClocksAreReadOnce) {
  const auto now = steady_clock::now() + 1h;
  EXPECT_EQ(absolute_timeout(now).deadline(), now.time_since_epoch().count());
  const auto theirs = std::chrono::steady_clock::now() + 1h;
  EXPECT_EQ(absolute_timeout(theirs).deadline(), theirs.time_since_epoch().count());
  const std::int64_t before = detail::now_ns();
  const std::int64_t walled = absolute_timeout(std::chrono::system_clock::now() + 1h).deadline();
  EXPECT_GE(walled, before + 3'599'000'000'000) << "the wall clock went back by a second";
  EXPECT_LE(walled, detail::now_ns() + 3'601'000'000'000);
}

}  // namespace
