// The parallel loops over ranges, with projections.

#include "support/runtime_fixture.hpp"

#include <ulexite/sync/parallel_for.hpp>
#include <ulexite/sync/parallel_reduce.hpp>
#include <ulexite/sync/parallel_sort.hpp>
#include <ulexite/sync/parallel_transform.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ParallelViews : public WorkersTest {};
ULEXITE_TEST_WORKERS(ParallelViews);

TEST_P(ParallelViews, ForAndReduceTakeRanges) {
  run([] {
    std::vector<int> values(10'000);
    std::iota(values.begin(), values.end(), 0);
    parallel_for(values, [](int& each) { ++each; });
    EXPECT_EQ(parallel_reduce(values, 0L), 50'005'000L);
    EXPECT_EQ(parallel_reduce(values, 0L, [](int x) { return 2L * x; }, std::plus<>(), 7), 100'010'000L);
    EXPECT_EQ(parallel_reduce(values, 0, [](int a, int b) { return std::max(a, b); }), 10'000);
    EXPECT_EQ(parallel_reduce(std::span(values).first(0), 5), 5);
    std::atomic<long> sum{0};
    parallel_for(std::views::iota(0, 1000), [&](int i) { sum += i; });
    parallel_for(
        values | std::views::transform([](int x) { return 2 * x; }) | std::views::take(10), [&](int x) { sum += x; },
        2);
    EXPECT_EQ(sum, 499'500 + 110);
    std::array<std::string, 3> words{"a", "b", "c"};
    EXPECT_EQ(parallel_reduce(words, std::string()), "abc");
    EXPECT_THROW(parallel_for(values, [](int) { throw std::runtime_error("no"); }), std::runtime_error);
  });
}

struct person {
  std::string name;
  int age;
};

TEST_P(ParallelViews, SortTakesRangesAndProjections) {
  run([] {
    std::vector<person> people;
    for (int i = 0; i < 20'000; ++i) people.push_back({std::to_string(i), (i * 7919) % 20'011});
    parallel_sort(people, std::less<>(), &person::age);
    EXPECT_TRUE(std::ranges::is_sorted(people, {}, &person::age));
    parallel_sort(people, std::greater<>(), [](const person& each) { return each.age % 100; });
    EXPECT_TRUE(std::ranges::is_sorted(people, std::greater<>(), [](const person& each) { return each.age % 100; }));
    parallel_sort(people.begin(), people.end(), std::less<>(), &person::name);
    EXPECT_TRUE(std::ranges::is_sorted(people, {}, &person::name));
    std::vector<int> numbers{3, 1, 2};
    parallel_sort(numbers);
    parallel_sort(std::span(numbers), std::greater<>());
    EXPECT_EQ(numbers, (std::vector<int>{3, 2, 1}));
  });
}

TEST_P(ParallelViews, TransformWritesToTheSamePlaces) {
  run([] {
    std::vector<int> from(10'000);
    std::iota(from.begin(), from.end(), 0);
    std::vector<std::string> to(from.size());
    EXPECT_EQ(parallel_transform(from, to.begin(), [](int x) { return std::to_string(x); }), to.end());
    EXPECT_EQ(to[9'999], "9999");
    auto one = std::make_unique<int>(1);  // a function that can only be moved
    parallel_transform(from, to.begin(), [one = std::move(one)](int x) { return std::to_string(x + *one); });
    EXPECT_EQ(to[9'999], "10000");
    EXPECT_EQ(parallel_transform(from.begin(), from.begin() + 5'000, from.begin(), std::negate<>(), 16),
              from.begin() + 5'000);
    EXPECT_EQ(from[4'999], -4'999);
    EXPECT_EQ(from[5'000], 5'000);
    EXPECT_EQ(parallel_transform(from.begin(), from.begin(), to.begin(), [](int) { return ""; }), to.begin());
  });
}

}  // namespace
