#include <ulexite/base/error.hpp>
#include <ulexite/base/panic.hpp>
#include <ulexite/base/random.hpp>
#include <ulexite/base/spin_lock.hpp>

#include "support/watchdog.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using detail::spin_lock;
using testing::KilledBySignal;

TEST(Random, StaysBelowItsBoundAndReachesAllOfIt) {
  for (const std::uint64_t seed : {0ull, 1ull, 42ull, ~0ull}) {
    detail::random random(seed);
    for (const std::uint32_t bound : {1u, 2u, 3u, 7u, 100u}) {
      std::vector<int> seen(bound);
      for (std::uint32_t i = 0; i < bound * 100; ++i) {
        const std::uint32_t number = random.below(bound);
        ASSERT_LT(number, bound);
        ++seen[number];
      }
      for (const int count : seen) EXPECT_GT(count, 0) << "seed " << seed << ", bound " << bound;
    }
    for (int i = 0; i < 1000; ++i) ASSERT_LT(random.below(0xffffffffu), 0xffffffffu);
  }
}

TEST(Random, RepeatsItselfForASeedOnly) {
  detail::random one(7), same(7), other(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t number = one.next();
    EXPECT_EQ(number, same.next());
    differs |= number != other.next();
  }
  EXPECT_TRUE(differs);
}

TEST(SpinLock, LetsOneInAtATime) {
  const test::watchdog watchdog("SpinLock.LetsOneInAtATime");
  constexpr int rounds = test::times(100'000);
  spin_lock lock;
  long count = 0;  // not atomic
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < rounds; ++k) {
        const std::lock_guard guard(lock);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4 * rounds);
}

TEST(SpinLock, TryLockSucceedsOnlyWhileItIsFree) {
  spin_lock lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

// It is handed over with a fiber, so it belongs to no thread.
TEST(SpinLock, MayBeReleasedByAnotherThread) {
  spin_lock lock;
  lock.lock();
  std::thread([&] { lock.unlock(); }).join();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(Errors, HaveACategoryAndATextEach) {
  EXPECT_STREQ(error_category().name(), "ulexite");
  std::vector<std::string> texts;
  for (const errc code : {errc::cancelled, errc::deadline_exceeded, errc::channel_closed, errc::no_runtime,
                          errc::limit_reached, errc::deadlock}) {
    const std::error_code error = code;
    EXPECT_TRUE(error);
    EXPECT_EQ(&error.category(), &error_category());
    EXPECT_EQ(error, code);
    for (const std::string& earlier : texts) EXPECT_NE(error.message(), earlier);
    texts.push_back(error.message());
  }
  EXPECT_EQ(error_category().message(99), "unknown ulexite error 99");
}

TEST(Errors, EqualTheConditionsOfTheStandard) {
  EXPECT_EQ(make_error_code(errc::cancelled), std::errc::operation_canceled);
  EXPECT_EQ(make_error_code(errc::deadline_exceeded), std::errc::timed_out);
  EXPECT_NE(make_error_code(errc::channel_closed), std::errc::operation_canceled);
  EXPECT_NE(make_error_code(errc::deadline_exceeded), std::errc::operation_canceled);
}

TEST(Errors, CarryTheirCodes) {
  EXPECT_EQ(operation_cancelled().code(), errc::cancelled);
  EXPECT_EQ(deadline_exceeded().code(), errc::deadline_exceeded);
  EXPECT_EQ(channel_closed().code(), errc::channel_closed);
  EXPECT_THROW(throw deadline_exceeded(), operation_cancelled);
  EXPECT_THROW(throw usage_error("wrong"), std::logic_error);
}

TEST(PanicDeathTest, IsOneLineAndAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(detail::panic("%d of %s", 3, "five"), KilledBySignal(SIGABRT), "^ulexite: BUG: 3 of five\n");
}

TEST(PanicDeathTest, CutsALineThatIsTooLong) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string text(5000, 'x');
  EXPECT_EXIT(detail::panic("%s", text.c_str()), KilledBySignal(SIGABRT), "^ulexite: BUG: x{900,1010}\n");
}

TEST(Warn, IsOneLine) {
  testing::internal::CaptureStderr();
  detail::warn("%s %d", "number", 7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "ulexite: number 7\n");
}

}  // namespace
