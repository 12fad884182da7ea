#include <ulexite/base/sanitizers.hpp>
#include <ulexite/fiber/stack_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#if ULEXITE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace {

using ulexite::detail::count_stack_guards;
using ulexite::detail::stack;
using ulexite::detail::stack_high_water;
using ulexite::detail::stack_pool;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// Clean and with nothing taken, but perhaps not empty: pools live as long as the process. Tests that count use a size
// of their own.
stack_pool& fresh_pool(std::size_t size) {
  stack_pool& pool = stack_pool::of_size(size);
  pool.trim(true);
  return pool;
}

std::size_t resident_bytes() {
  std::size_t total = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * page();
}

std::size_t count_maps() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

std::size_t length(const stack* list) {
  std::size_t count = 0;
  for (; list; list = list->next) ++count;
  return count;
}

std::vector<stack*> items(stack* list) {
  std::vector<stack*> all;
  for (; list; list = list->next) all.push_back(list);
  return all;
}

void touch_top(const stack& stack, std::size_t bytes) { std::memset(stack.high - bytes, 0x5a, bytes); }

TEST(StackPool, RoundsSizesUpToPowersOfTwo) {
  EXPECT_EQ(stack_pool::of_size(0).stack_size(), std::max(16 * kib, 4 * page()));
  EXPECT_EQ(&stack_pool::of_size(0), &stack_pool::of_size(1));
  EXPECT_EQ(stack_pool::of_size(64 * kib).stack_size(), 64 * kib);
  EXPECT_EQ(stack_pool::of_size(64 * kib + 1).stack_size(), 128 * kib);
  EXPECT_EQ(&stack_pool::of_size(100 * kib), &stack_pool::of_size(128 * kib));
  EXPECT_EQ(stack_pool::of_size(1024 * mib).stack_size(), 1024 * mib);
}

TEST(StackPool, RefusesAStackAboveOneGibibyteNamingIt) {
  try {
    stack_pool::of_size(1024 * mib + 1);
    FAIL() << "no exception";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("1073741825"), std::string::npos) << error.what();
  }
}

TEST(StackPool, StacksHaveTheirSpaceAndTheirGuard) {
  for (const std::size_t size : {32 * kib, 64 * kib, 1 * mib, 8 * mib}) {
    stack_pool& pool = stack_pool::of_size(size);
    stack* const one = pool.take();
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->size(), size);
    EXPECT_EQ(one->guard, std::max(std::clamp(size / 4, 64 * kib, mib), page()));
    EXPECT_EQ(one->next, nullptr);
    EXPECT_EQ(one->owner.load(), nullptr);
    pool.give(one);
  }
}

TEST(StackPool, EveryUsableByteCanBeWritten) {
  stack_pool& pool = stack_pool::of_size(64 * kib);
  stack* const one = pool.take();
  std::memset(one->low, 1, one->size());
  EXPECT_EQ(*one->low, 1);
  EXPECT_EQ(one->high[-1], 1);
  pool.give(one);
}

TEST(StackPool, TakesTheStackGivenLastFirst) {
  stack_pool& pool = fresh_pool(256 * kib);
  stack* const a = pool.take();
  stack* const b = pool.take();
  EXPECT_NE(a, b);
  pool.give(a);
  pool.give(b);
  EXPECT_TRUE(b->dirty);
  EXPECT_EQ(pool.take(), b);
  EXPECT_EQ(pool.take(), a);
  b->next = a;
  a->next = nullptr;
  pool.give(b);
  EXPECT_EQ(pool.take(), b);
  EXPECT_EQ(pool.take(), a);
  a->next = b;
  b->next = nullptr;
  pool.give(a);
}

TEST(StackPool, TakesBatchesOfUsedAndNewStacks) {
  stack_pool& pool = fresh_pool(512 * kib);
  const std::size_t before = pool.carved();
  pool.give(pool.take(3));
  EXPECT_EQ(pool.unused(), std::max<std::size_t>(before, 3));
  stack* const batch = pool.take(300);  // more than two slabs
  const std::vector<stack*> all = items(batch);
  EXPECT_EQ(all.size(), 300U);
  EXPECT_EQ(std::set<stack*>(all.begin(), all.end()).size(), 300U);
  EXPECT_EQ(pool.carved(), std::max<std::size_t>(before, 300));
  EXPECT_EQ(pool.unused(), pool.carved() - 300);
  pool.give(batch);
  EXPECT_EQ(pool.unused(), pool.carved());
}

TEST(StackPool, AStackLargerThanASlabIsOneOfItsOwn) {
  stack_pool& pool = stack_pool::of_size(256 * mib);
  stack* const two = pool.take(2);
  ASSERT_EQ(length(two), 2U);
  touch_top(*two, page());
  *two->low = 1;
  pool.give(two);
  EXPECT_GE(pool.trim(true), 2U);
}

TEST(StackPool, GivingForgetsTheOwner) {
  stack_pool& pool = stack_pool::of_size(64 * kib);
  const ulexite::detail::fiber_identity somebody{};
  stack* const one = pool.take();
  one->owner.store(&somebody);
  pool.give(one);
  EXPECT_EQ(one->owner.load(), nullptr);
}

#if ULEXITE_ASAN
TEST(StackPool, ForgetsTheRedZonesOfFramesThatNeverReturned) {
  stack_pool& pool = stack_pool::of_size(64 * kib);
  stack* const one = pool.take();
  __asan_poison_memory_region(one->low, one->size());
  pool.give(one);
  EXPECT_EQ(__asan_region_is_poisoned(one->low, one->size()), nullptr);
}
#endif

TEST(StackPool, HighWaterIsTheDeepestPageTouched) {
  stack_pool& pool = fresh_pool(8 * mib);
  stack* const one = pool.take();
  EXPECT_EQ(stack_high_water(*one), 0U);
  touch_top(*one, 1);
  EXPECT_EQ(stack_high_water(*one), page());
  one->high[-static_cast<std::ptrdiff_t>(5 * page())] = 1;
  EXPECT_EQ(stack_high_water(*one), 5 * page());
  *one->low = 1;
  EXPECT_EQ(stack_high_water(*one), one->size());
  pool.give(one);
  pool.trim(true);
  EXPECT_EQ(stack_high_water(*one), 0U);
}

TEST(StackPool, CommitsTheTopmostPageOfStacksTakenTogether) {
  stack_pool& pool = fresh_pool(32 * mib);
  stack* const alone = pool.take();
  EXPECT_EQ(stack_high_water(*alone), 0U);
  for (int turn = 0; turn < 2; ++turn) {  // new ones, then cleaned ones
    stack* const list = pool.take(100);
    ASSERT_EQ(length(list), 100U);
    for (stack* each = list; each; each = each->next) EXPECT_EQ(stack_high_water(*each), page());
    pool.give(list);
    EXPECT_EQ(pool.trim(true), 100U);
  }
  pool.give(alone);
}

TEST(StackPool, TrimGivesMemoryBackOfStacksUnusedSinceTheLastOne) {
  constexpr std::size_t count = 2000;
  stack_pool& pool = fresh_pool(128 * kib);
  stack* const list = pool.take(count);
  ASSERT_EQ(length(list), count);
  for (stack* each = list; each; each = each->next) touch_top(*each, 4 * page());
  pool.give(list);

  const std::size_t touched = resident_bytes();
  EXPECT_EQ(pool.trim(), 0U);  // all were used before this trim
  EXPECT_GE(pool.trim(), count);
  const std::size_t trimmed = resident_bytes();
  EXPECT_GT(touched, trimmed + count * 4 * page() * 8 / 10);
  EXPECT_EQ(pool.trim(), 0U);
  EXPECT_EQ(pool.unused(), pool.carved());
}

TEST(StackPool, TrimSparesWhatWasUsedLately) {
  stack_pool& pool = fresh_pool(2 * mib);
  stack* const list = pool.take(10);
  for (stack* each = list; each; each = each->next) touch_top(*each, page());
  pool.give(list);
  EXPECT_EQ(pool.trim(), 0U);

  stack* const used = pool.take(3);
  const std::vector<stack*> lately = items(used);
  pool.give(used);
  EXPECT_EQ(pool.trim(), 7U);
  for (const stack* each : lately) {
    EXPECT_TRUE(each->dirty);
    EXPECT_EQ(stack_high_water(*each), page());
  }
  EXPECT_EQ(pool.trim(), 3U);
  for (const stack* each : lately) EXPECT_FALSE(each->dirty);
}

TEST(StackPool, TrimOfAllCleansEverythingUnusedAndNothingElse) {
  stack_pool& pool = fresh_pool(4 * mib);
  stack* const mine = pool.take();
  touch_top(*mine, page());
  pool.give(pool.take(5));
  EXPECT_EQ(stack_pool::of_size(4 * mib).trim(true), 5U);
  EXPECT_EQ(stack_high_water(*mine), page());
  EXPECT_EQ(mine->high[-1], 0x5a);
  pool.give(mine);
  EXPECT_GE(stack_pool::trim_all(true), 1U);
  EXPECT_EQ(stack_high_water(*mine), 0U);
}

TEST(StackPool, AHundredThousandStacksAreGuardedWithFewMaps) {
  if (count_stack_guards().installed == 0) stack_pool::of_size(64 * kib).give(stack_pool::of_size(64 * kib).take());
  if (count_stack_guards().installed == 0) GTEST_SKIP() << "no MADV_GUARD_INSTALL here";
  constexpr std::size_t count = 100'000;
  stack_pool& pool = fresh_pool(64 * kib);
  const std::size_t maps = count_maps();
  const std::size_t guards = count_stack_guards().installed;
  const std::size_t carved = pool.carved();

  stack* const list = pool.take(count);
  ASSERT_EQ(length(list), count);
  EXPECT_EQ(count_stack_guards().installed - guards, pool.carved() - carved);
  EXPECT_LT(count_maps(), maps + 400);  // it is fewer than ten, but a sanitizer maps shadows for each slab
  pool.give(list);
}

TEST(StackPool, FourThreadsNeverHoldTheSameStack) {
  stack_pool& pool = fresh_pool(16 * mib);
  const std::size_t in_use = pool.carved() - pool.unused();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&pool, thread] {
      for (std::size_t turn = 0; turn < 2000; ++turn) {
        stack* const list = pool.take(1 + turn % 5);
        ASSERT_EQ(length(list), 1 + turn % 5);
        for (stack* each = list; each; each = each->next) *(each->high - 1) = static_cast<char>(thread);
        for (stack* each = list; each; each = each->next) ASSERT_EQ(*(each->high - 1), thread);
        pool.give(list);
        if (turn % 100 == 99) pool.trim(turn % 200 == 199);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.carved() - pool.unused(), in_use);
  const std::size_t all = pool.unused();
  stack* const list = pool.take(all);
  const std::vector<stack*> stacks = items(list);
  EXPECT_EQ(std::set<stack*>(stacks.begin(), stacks.end()).size(), all);
  EXPECT_EQ(pool.unused(), 0U);
  pool.give(list);
}

}  // namespace
