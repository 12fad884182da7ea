// Loops, sums and sorts over ranges that several workers share.

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/parallel_for.hpp>
#include <ulexite/sync/parallel_reduce.hpp>
#include <ulexite/sync/parallel_sort.hpp>

#include "support/runtime_fixture.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <valarray>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ParallelRange : public WorkersTest {};
ULEXITE_TEST_WORKERS(ParallelRange);

TEST_P(ParallelRange, ForVisitsEachOnce) {
  run([] {
    for (const std::size_t size : {0, 1, 2, 3, 10, 255, 256, 257, 10'000, 300'000})
      for (const std::size_t grain : {0, 1, 7, 1000}) {
        std::vector<std::uint8_t> visits(size);
        parallel_for(std::size_t{0}, size, [&](std::size_t i) { ++visits[i]; }, grain);
        ASSERT_EQ(std::ranges::count(visits, 1), static_cast<std::ptrdiff_t>(size)) << size << " by " << grain;
      }
  });
}

TEST_P(ParallelRange, ForOverNegativeAndFullRanges) {
  run([] {
    std::atomic<long> sum{0};
    parallel_for(-100, 50, [&](int i) { sum += i; });
    EXPECT_EQ(sum, -100 * 101 / 2 + 49 * 50 / 2);
    std::atomic<int> count{0};
    parallel_for(INT8_MIN, INT8_MAX, [&](auto) { ++count; });
    EXPECT_EQ(count, 255);
    parallel_for(5, 3, [&](int) { ADD_FAILURE(); });
    parallel_for(INT64_MAX - 3, INT64_MAX, [&](std::int64_t i) { EXPECT_GE(i, INT64_MAX - 3); });
  });
}

TEST_P(ParallelRange, ForOverIterators) {
  run([] {
    std::vector<int> values(5000, 1);
    parallel_for(values.begin(), values.end(), [](int& value) { value *= 3; });
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0), 15'000);
  });
}

// Every call is under way at the same time as another: a loop must be split while its calls wait.
TEST_P(ParallelRange, CallsMayWait) {
  run([] {
    std::atomic<int> done{0};
    parallel_for(0, 200, [&](int i) {
      if (i % 20 == 0) this_fiber::sleep_for(100us);
      ++done;
    });
    EXPECT_EQ(done, 200);
  });
}

TEST_P(ParallelRange, NestedLoops) {
  run([] {
    std::atomic<long> count{0};
    parallel_for(0, 100, [&](int) { parallel_for(0, 100, [&](int) { parallel_for(0, 10, [&](int) { ++count; }); }); });
    EXPECT_EQ(count, 100'000);
  });
}

TEST_P(ParallelRange, ForThrowsWhatACallThrows) {
  run([] {
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> calls{0};
      EXPECT_THROW(parallel_for(0, 100'000,
                                [&](int i) {
                                  ++calls;
                                  if (i == 5'000) throw std::runtime_error("x");
                                }),
                   std::runtime_error);
      EXPECT_GT(calls, 0);
    }
  });
}

TEST_P(ParallelRange, ForIsACancellationPoint) {
  run([] {
    event begun;
    std::atomic<long> calls{0};
    auto loop = spawn([&] {
      parallel_for(std::int64_t{0}, INT64_MAX, [&](std::int64_t i) {
        ++calls;
        if (i == 0) begun.set();
        if (i % 1000 == 0) this_fiber::yield();
      });
    });
    begun.wait();
    loop.request_stop();
    EXPECT_THROW(loop.get(), operation_cancelled);
  });
}

TEST_P(ParallelRange, ForMeetsADeadlineBetweenTwoParts) {
  run([] {
    const deadline_scope bound(5ms);
    EXPECT_THROW(parallel_for(std::int64_t{0}, INT64_MAX, [](std::int64_t) {}), deadline_exceeded);
  });
}

TEST_P(ParallelRange, BoundsOfTwoTypes) {
  run([] {
    const std::vector<int> values(100, 1);
    std::atomic<std::size_t> sum{0};
    parallel_for(0, values.size(), [&](std::size_t i) { sum += i; });
    EXPECT_EQ(sum, 4950u);
    EXPECT_EQ(
        parallel_reduce(0, values.size(), 0L, [&](std::size_t i) { return long{values[i]}; }, std::plus<>{}), 100);
  });
}

TEST_P(ParallelRange, ReduceKeepsTheOrder) {
  run([] {
    std::string expected = "start";
    for (int i = 0; i < 3000; ++i) expected += std::to_string(i);
    for (const std::size_t grain : {0, 1, 100})
      EXPECT_EQ(parallel_reduce(
                    0, 3000, std::string("start"), [](int i) { return std::to_string(i); },
                    [](std::string a, std::string b) { return std::move(a) + b; }, grain),
                expected);
    EXPECT_EQ(parallel_reduce(3, 3, 42, [](int i) { return i; }, std::plus<>{}), 42);
  });
}

TEST_P(ParallelRange, ReduceMovesItsValues) {
  run([] {
    const std::vector<int> values(10'000, 2);
    const auto sum = parallel_reduce(
        values.begin(), values.end(), std::make_unique<long>(1), [](int i) { return std::make_unique<long>(i); },
        [](std::unique_ptr<long> a, std::unique_ptr<long> b) {
          *a += *b;
          return a;
        });
    EXPECT_EQ(*sum, 20'001);
  });
}

// An operator of std::valarray returns an expression, which refers to its operands.
TEST(ParallelReduceParts, AreReducedBeforeTheyGo) {
  const auto map = [](int i) { return std::valarray<double>(i, 32); };
  std::plus<> plus;
  const int first = 0;
  detail::reduce_work<int, std::valarray<double>, decltype(map), std::plus<>> left(first, map, plus);
  auto right = left.fresh();
  left.run(0, 3);
  right.run(3, 6);
  left.join(std::move(right));
  const std::valarray<double> sum = left.take();
  EXPECT_EQ(sum.min(), 15);
  EXPECT_EQ(sum.max(), 15);
}

TEST_P(ParallelRange, ReduceMayGiveItsOperandBack) {
  run([] {
    const auto append = [](std::vector<int>&& to, std::vector<int>&& what) -> std::vector<int>&& {
      to.insert(to.end(), what.begin(), what.end());
      return std::move(to);
    };
    const auto all = parallel_reduce(0, 1000, std::vector<int>(), [](int i) { return std::vector{i}; }, append, 10);
    ASSERT_EQ(all.size(), 1000u);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
  });
}

TEST_P(ParallelRange, ReduceThrows) {
  run([] {
    const auto map = [](int i) -> long {
      if (i == 777) throw std::runtime_error("x");
      return i;
    };
    EXPECT_THROW(static_cast<void>(parallel_reduce(0, 100'000, 0L, map, std::plus<>{})), std::runtime_error);
  });
}

std::vector<int> made_of(const std::string& kind, std::size_t size) {
  std::vector<int> values(size);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < size; ++i) {
    const int n = static_cast<int>(i);
    values[i] = kind == "random"    ? static_cast<int>(random())
                : kind == "equal"   ? 5
                : kind == "few"     ? static_cast<int>(random() % 4)
                : kind == "rising"  ? n
                : kind == "falling" ? -n
                : kind == "organ"   ? std::min(n, static_cast<int>(size) - n)
                                    : n ^ 1;
  }
  return values;
}

TEST_P(ParallelRange, Sorts) {
  run([] {
    for (const char* kind : {"random", "equal", "few", "rising", "falling", "organ", "swapped"})
      for (const std::size_t size : {0, 1, 2, 9, 2048, 2049, 5000, 200'000}) {
        std::vector<int> values = made_of(kind, size), expected = values;
        std::sort(expected.begin(), expected.end());
        parallel_sort(values.begin(), values.end());
        ASSERT_EQ(values, expected) << kind << ' ' << size;
      }
  });
}

TEST_P(ParallelRange, SortsByAnOrderAndMoves) {
  run([] {
    std::vector<std::unique_ptr<int>> values;
    for (const int value : made_of("random", 20'000)) values.push_back(std::make_unique<int>(value));
    const auto greater = [](const auto& a, const auto& b) { return *a > *b; };
    parallel_sort(values.begin(), values.end(), greater);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end(), greater));
  });
}

// As with std::sort, which may lose the value that it holds in its hand.
struct person {
  int age;
  bool older(const person& other) const { return age > other.age; }
};

TEST_P(ParallelRange, SortsByAMember) {
  run([] {
    std::vector<person> people;
    for (const int value : made_of("random", 10'000)) people.push_back({value});
    parallel_sort(people.begin(), people.end(), &person::older);
    EXPECT_TRUE(std::is_sorted(people.begin(), people.end(), [](auto& a, auto& b) { return a.older(b); }));
  });
}

TEST_P(ParallelRange, SortsByAnOrderOnReferencesThatAreNotConst) {
  run([] {
    std::vector<int> values(5'000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 7'919 % 5'003);
    parallel_sort(values.begin(), values.end(), [](int& a, int& b) { return a > b; });
    EXPECT_TRUE(std::is_sorted(values.rbegin(), values.rend()));
  });
}

TEST_P(ParallelRange, ASortThatThrowsLeavesElementsThatCanBeUsed) {
  run([] {
    for (const int when : {1, 1000, 30'000, 100'000}) {
      std::vector<std::string> values;
      for (const int value : made_of("random", 30'000)) values.push_back("a longer string " + std::to_string(value));
      std::atomic<int> comparisons{0};
      EXPECT_THROW(parallel_sort(values.begin(), values.end(),
                                 [&](const std::string& a, const std::string& b) {
                                   if (++comparisons == when) throw std::runtime_error("x");
                                   return a < b;
                                 }),
                   std::runtime_error);
      parallel_sort(values.begin(), values.end());
      EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
      EXPECT_LE(std::ranges::count(values, ""), static_cast<std::ptrdiff_t>(GetParam()));
    }
  });
}

TEST(ParallelRangeOutside, PlainLoops) {
  std::vector<int> order;
  parallel_for(0, 1000, [&](int i) { order.push_back(i); });
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(parallel_reduce(1, 101, 0, [](int i) { return i; }, std::plus<>{}), 5050);
  std::vector<int> values = made_of("random", 10'000);
  parallel_sort(values.begin(), values.end());
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
}

// A range of a million needs only one stack for each worker that helps.
TEST_P(ParallelRange, MemoryDoesNotGrowWithTheWidth) {
  run([this] {
    const auto before = rt().metrics().fibers_spawned;
    std::atomic<int> calls{0};
    parallel_for(0, 1'000'000, [&](int) { calls.fetch_add(1, std::memory_order_relaxed); }, 1);
    EXPECT_EQ(calls, 1'000'000);
    EXPECT_LT(rt().metrics().fibers_spawned - before, 100'000u);
  });
}

}  // namespace
