// What a run says that hangs, or with which the process ends.

#include <ulexite.hpp>
#include <ulexite/base/sanitizers.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
using ::testing::KilledBySignal;
using ulexite::testing::explore;
using ulexite::testing::find_failure;

constexpr bool sanitized = ULEXITE_ASAN || ULEXITE_TSAN;

// Calls `otherwise` if the second fiber comes first.
void need_an_order(const std::function<void()>& otherwise) {
  bool second = false;
  task_group both;
  both.spawn([&] {
    if (second) otherwise();
  });
  both.spawn([&] { second = true; });
  both.wait();
}

std::string schedule_of_the_other_order() {
  return find_failure({}, [] { need_an_order([] { ulexite::testing::fail("the second came first"); }); })
      .failure->replay;
}

class LastWords : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LastWords, OfAnAbortRepeatTheRun) {
  const std::string schedule = schedule_of_the_other_order();
  EXPECT_NE(schedule, "list:");
  EXPECT_EXIT(explore([] { need_an_order(std::abort); }), KilledBySignal(SIGABRT),
              "ends in a run of ulexite::testing\nto repeat it: ULEXITE_SCHEDULE=list:[0-9]+=[0-9]+.*\n");
  EXPECT_EXIT(explore({.replay = schedule}, [] { need_an_order(std::abort); }), KilledBySignal(SIGABRT),
              "ULEXITE_SCHEDULE=" + schedule + "\n");
}

TEST_F(LastWords, OfTerminateComeAfterTheFiber) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  EXPECT_EXIT(explore([] { need_an_order(std::terminate); }), KilledBySignal(SIGABRT),
              "std::terminate in fiber #2 .*(.|\n)*ULEXITE_SCHEDULE=list:");
}

TEST_F(LastWords, OfAFaultComeBeforeTheFiber) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  const auto fault = [] { *static_cast<volatile int*>(nullptr) = 1; };
  EXPECT_EXIT(explore([=] { need_an_order(fault); }), KilledBySignal(SIGSEGV),
              "ULEXITE_SCHEDULE=list:.*\n(.|\n)*SIGSEGV in fiber #2 ");
}

// NOLINTNEXTLINE(misc-no-recursion): that is the test
[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

TEST_F(LastWords, OfAStackOverflow) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  EXPECT_EXIT(explore([] { need_an_order([] { recurse(1); }); }), KilledBySignal(SIGSEGV),
              "ULEXITE_SCHEDULE=list:.*\n(.|\n)*stack overflow in fiber #2 ");
}

TEST_F(LastWords, FollowTheReportOfASanitizer) {
  if (!ULEXITE_ASAN) GTEST_SKIP() << "a build without AddressSanitizer";
  const auto use_after_free = [] {
    auto* const number = new int(1);
    delete number;
    *static_cast<volatile int*>(number) = 2;  // NOLINT: that is the test
  };
  EXPECT_DEATH(explore([=] { need_an_order(use_after_free); }), "heap-use-after-free(.|\n)*ULEXITE_SCHEDULE=list:");
}

// Spins until something is on stderr. It calls by a pointer, because the stubs that lld makes for calls of a library
// have no tables, and a backtrace that begins in one ends there.
void spin_until_it_is_told() {
  int (*volatile const look)(int, struct stat*) = ::fstat;
  for (struct stat file{}; look(STDERR_FILENO, &file) == 0 && file.st_size == 0;) continue;
}

TEST(Watchdog, NamesTheFiberThatMakesNoStep) {
  ::testing::internal::CaptureStderr();
  explore({.schedules = 1, .stuck_after = 50ms}, [] { spawn({.name = "spinner"}, spin_until_it_is_told).join(); });
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("has made no step for 50 ms\n"), std::string::npos) << text;
  EXPECT_NE(text.find("fiber #2 \"spinner\": runs\n  spawned at "), std::string::npos) << text;
  EXPECT_NE(text.find("to repeat it: ULEXITE_SCHEDULE=list:"), std::string::npos) << text;
  if (!ULEXITE_TSAN) EXPECT_NE(text.find("spin_until_it_is_told"), std::string::npos) << text;
}

TEST(Watchdog, OfALongTimeIsQuiet) {
  ::testing::internal::CaptureStderr();
  explore({.schedules = 1, .stuck_after = std::chrono::milliseconds::max()}, [] { ::usleep(20'000); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Watchdog, IsQuietWhileThereAreSteps) {
  ::testing::internal::CaptureStderr();
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < 100ms)
    explore({.schedules = 100, .real_time = 100ms, .stuck_after = 50ms}, [] { need_an_order([] {}); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
