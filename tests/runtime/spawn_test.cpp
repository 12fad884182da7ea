#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Spawn : public WorkersTest {};
ULEXITE_TEST_WORKERS(Spawn);

struct person {
  int age = 0;
  int older(int by) { return age += by; }
};

int twice(int n) { return 2 * n; }

TEST_P(Spawn, CallsWhateverCanBeCalled) {
  run([] {
    EXPECT_EQ(spawn([] { return 1; }).get(), 1);
    EXPECT_EQ(spawn(twice, 4).get(), 8);
    EXPECT_EQ(spawn(&twice, 5).get(), 10);
    EXPECT_EQ(spawn(std::function<int()>([] { return 2; })).get(), 2);
    person one{30};
    EXPECT_EQ(spawn(&person::older, &one, 2).get(), 32);
    EXPECT_EQ(one.age, 32);
    EXPECT_EQ(spawn(&person::older, one, 5).get(), 37);
    EXPECT_EQ(one.age, 32) << "the argument is a copy";
    EXPECT_EQ(spawn(&person::older, std::ref(one), 5).get(), 37);
    EXPECT_EQ(one.age, 37);
  });
}

TEST_P(Spawn, CopiesArgumentsIntoTheFiber) {
  run([] {
    std::string text = "before";
    auto handle = spawn([](std::string&& mine) { return std::move(mine); }, text);
    text = "after";
    EXPECT_EQ(handle.get(), "before");
    EXPECT_EQ(spawn([](const char* letters) { return std::string(letters); }, "letters").get(), "letters");
  });
}

TEST_P(Spawn, TakesMoveOnlyFunctionsArgumentsAndResults) {
  run([] {
    EXPECT_EQ(spawn([p = std::make_unique<int>(3)] { return *p; }).get(), 3);
    EXPECT_EQ(spawn([](std::unique_ptr<int> p) { return *p; }, std::make_unique<int>(4)).get(), 4);
    EXPECT_EQ(*spawn([] { return std::make_unique<int>(5); }).get(), 5);
    auto consume = [p = std::make_unique<int>(6)]() mutable { return std::move(p); };
    EXPECT_EQ(*spawn(std::move(consume)).get(), 6);
  });
}

TEST_P(Spawn, GivesReferencesBack) {
  run([] {
    int value = 1;
    int& same = spawn([&]() -> int& { return value; }).get();
    EXPECT_EQ(&same, &value);
  });
}

template <std::size_t Bytes, std::size_t Alignment = 8>
struct alignas(Alignment) big {
  std::array<unsigned char, Bytes> bytes{};
  [[nodiscard]] bool aligned() const { return reinterpret_cast<std::uintptr_t>(this) % Alignment == 0; }
};

TEST_P(Spawn, TakesClosuresOfAnySizeAndAlignment) {
  run([] {
    auto try_one = [](auto object) {
      object.bytes.back() = 77;
      auto handle = spawn([object] { return object.aligned() ? object.bytes.back() : 0; });
      EXPECT_EQ(handle.get(), 77) << sizeof object;
    };
    try_one(big<1>{});
    try_one(big<64>{});
    try_one(big<300>{});
    try_one(big<400>{});
    try_one(big<500>{});
    try_one(big<5000>{});
    try_one(big<16, 16>{});
    try_one(big<64, 64>{});
    try_one(big<4096, 4096>{});
  });
}

TEST_P(Spawn, GivesResultsOfAnySizeAndAlignment) {
  run([] {
    auto try_one = [](auto object) {
      object.bytes.back() = 78;
      const auto result = spawn([object] { return object; }).get();
      EXPECT_EQ(result.bytes.back(), 78) << sizeof object;
      EXPECT_TRUE(result.aligned());
    };
    try_one(big<100>{});
    try_one(big<600>{});
    try_one(big<64, 64>{});
  });
  EXPECT_EQ(run([] { return big<600>{}; }).bytes.size(), 600u);
}

// A function that may be called only once, as an rvalue.
template <std::size_t Bytes>
struct once {
  big<Bytes> load{};
  int operator()() && { return 9; }
};

TEST_P(Spawn, CallsTheClosureAsAnRvalueWhateverItsSize) {
  run([] {
    EXPECT_EQ(spawn(once<8>{}).get(), 9);
    EXPECT_EQ(spawn(once<2000>{}).get(), 9);
  });
}

struct counted {
  explicit counted(std::atomic<int>& count) : alive(&count) { ++*alive; }
  counted(const counted& other) : alive(other.alive) { ++*alive; }
  ~counted() { --*alive; }
  std::atomic<int>* alive;
};

TEST_P(Spawn, DestroysTheClosureBeforeTheJoinerGoesOn) {
  run([] {
    std::atomic<int> alive{0};  // the spawner destroys what it has moved from while the fiber runs
    {
      counted one(alive);
      auto handle = spawn([one] { this_fiber::yield(); });
      handle.join();
      EXPECT_EQ(alive, 1);
    }
    EXPECT_EQ(alive, 0);
  });
}

struct copy_throws {
  copy_throws() = default;
  copy_throws(const copy_throws&) { throw std::runtime_error("no copy"); }
  void operator()() const { ADD_FAILURE() << "called"; }
};
struct big_copy_throws : copy_throws, big<1000> {};

TEST_P(Spawn, OfAClosureWhoseCopyThrowsLeavesNothingBehind) {
  run([] {
    const copy_throws small;
    EXPECT_THROW(spawn(small), std::runtime_error);
    const big_copy_throws large;
    EXPECT_THROW(spawn(large), std::runtime_error);
  });
  EXPECT_EQ(rt().metrics().fibers_live, 0u);
}

TEST_P(Spawn, WithAStackTooLargeIsRefused) {
  run([] {
    std::atomic<int> alive{0};
    {
      counted one(alive);
      EXPECT_THROW(spawn(fiber_options{.stack_size = std::size_t{2} << 30}, [one] {}), std::invalid_argument);
    }
    EXPECT_EQ(alive, 0);
  });
  EXPECT_EQ(rt().metrics().fibers_live, 0u);
}

TEST_P(Spawn, GivesNamesAndNumbers) {
  run([] {
    std::string name = "worker bee";
    auto handle = spawn({.name = name}, [] {
      EXPECT_EQ(this_fiber::name(), "worker bee");
      const std::uint64_t id = this_fiber::id();
      this_fiber::set_name("drone");
      this_fiber::yield();
      EXPECT_EQ(this_fiber::name(), "drone");
      EXPECT_EQ(this_fiber::id(), id);
      return id;
    });
    name = "another text";
    const std::uint64_t id = handle.id();
    EXPECT_NE(id, 0u);
    EXPECT_EQ(handle.get(), id);
    spawn([] { EXPECT_EQ(this_fiber::name(), ""); }).join();
  });
}

// The batches of numbers belong to threads, and the spawners change theirs.
TEST_P(Spawn, NumbersAreUniqueThoughSpawnersMigrate) {
  run([] {
    constexpr int spawners = 8, each = times(500);
    std::vector<join_handle<std::vector<std::uint64_t>>> all;
    for (int i = 0; i < spawners; ++i) {
      all.push_back(spawn([] {
        std::vector<std::uint64_t> ids;
        for (int k = 0; k < each; ++k) {
          auto child = spawn([] { return this_fiber::id(); });
          ids.push_back(child.id());
          EXPECT_EQ(child.get(), ids.back());
          this_fiber::yield();
        }
        return ids;
      }));
    }
    std::set<std::uint64_t> seen;
    for (auto& one : all)
      for (const std::uint64_t id : one.get()) EXPECT_TRUE(seen.insert(id).second) << id;
    EXPECT_EQ(seen.size(), std::size_t{spawners} * each);
  });
}

TEST_P(Spawn, ManyFibersAllRunOnce) {
  run([] {
    const int count = fibers(20'000);
    std::atomic<int> ran{0};
    std::vector<join_handle<int>> all;
    for (int i = 0; i < count; ++i)
      all.push_back(spawn([&ran, i] {
        ++ran;
        if (i % 3 == 0) this_fiber::yield();
        return i;
      }));
    for (int i = 0; i < count; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].get(), i);
    EXPECT_EQ(ran, count);
  });
}

TEST_P(Spawn, FibersSpawnFibers) {
  struct tree {
    static int grow(int depth) {
      if (depth == 0) return 1;
      auto left = spawn(grow, depth - 1), right = spawn(grow, depth - 1);
      return left.get() + right.get() + 1;
    }
  };
  const int depth = ULEXITE_TSAN ? 5 : 10;
  EXPECT_EQ(run([=] { return tree::grow(depth); }), (2 << depth) - 1);
}

TEST_P(Spawn, FromAnyThread) {
  std::vector<std::thread> threads;
  std::atomic<int> ran{0};
  runtime& shared = rt();
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < times(500); ++k) EXPECT_EQ(shared.spawn([&] { return ++ran > 0; }).get(), true);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ran, 4 * times(500));
}

using Stacks = RuntimeTest;

TEST_F(Stacks, HaveTheSizeThatWasAskedFor) {
  make({.threads = 2, .stack_size = 128 * 1024}).run([] {
    const auto usual = this_fiber::stack();
    EXPECT_GT(usual.size, 96u * 1024);
    EXPECT_LE(usual.size, 128u * 1024);
    EXPECT_GT(usual.used, 0u);
    EXPECT_LE(usual.used, usual.size);
    EXPECT_GE(usual.high_water, usual.used);
    EXPECT_LE(usual.high_water, usual.size);
    const auto large = spawn({.stack_size = 1000 * 1024}, [] { return this_fiber::stack(); }).get();
    EXPECT_GT(large.size, 960u * 1024);
    EXPECT_LE(large.size, 1024u * 1024);
  });
  EXPECT_EQ(this_fiber::stack().size, 0u);
}

// NOLINTNEXTLINE(misc-no-recursion): that is the test
[[gnu::noinline]] int deep(int depth) {
  char frame[4096];
  asm volatile("" : : "r"(frame) : "memory");  // the frame is used before and after the call, so it is a frame
  const int below = depth == 0 ? -1 : deep(depth - 1);
  asm volatile("" : : "r"(frame) : "memory");
  return below + 1;
}

TEST_F(Stacks, CarryADeepRecursionWhenTheyAreLarge) {
  make(2).run([] {
    auto handle = spawn({.stack_size = 1024 * 1024}, [] {
      const int depth = sanitized ? 100 : 230;
      EXPECT_EQ(deep(depth), depth);
      EXPECT_GT(this_fiber::stack().high_water, static_cast<std::size_t>(depth) * 4096);
      this_fiber::yield();
      EXPECT_EQ(deep(depth), depth);
    });
    handle.join();
  });
}

// Stacks of different sizes one after the other on the same worker.
TEST_F(Stacks, OfManySizesTakeTurns) {
  make(2).run([] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < fibers(600); ++i) {
      const std::size_t size = std::size_t{16 * 1024} << i % 5;
      all.push_back(spawn({.stack_size = size}, [size, i] {
        if (i % 2 == 0) this_fiber::yield();
        EXPECT_LE(this_fiber::stack().size, size);
        EXPECT_GT(this_fiber::stack().size, size / 2);
      }));
    }
    for (auto& each : all) each.join();
  });
}

}  // namespace
