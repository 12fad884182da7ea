// The cost of many fibers: memory only for their use, one map for thousands of guarded stacks, and nothing soon after
// their ends.

#include "support/runtime_fixture.hpp"

#include <ulexite/fiber/context.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <cstdlib>
#include <fstream>

#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using detail::count_stack_guards;
using detail::stack_pool;
using testing::KilledBySignal;

// More than any default of vm.max_map_count, which is 65,530 maps.
constexpr std::size_t many = 100'000;
const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * page;
}

std::size_t count_maps() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

double per_fiber(std::size_t after, std::size_t before) {
  return (static_cast<double>(after) - static_cast<double>(before)) / many;
}

bool kernel_installs_guards() {
  stack_pool& pool = stack_pool::of_size(64 * 1024);
  pool.give(pool.take());
  return count_stack_guards().installed > 0;
}

// `many` fibers, which all wait on one channel.
class crowd {
 public:
  crowd() : up_(many), down_(many) {
    for (std::size_t i = 0; i < many; ++i)
      spawn([this] {
        up_.done();
        gate_.receive();
        down_.done();
      }).detach();
  }
  void wait_until_parked() { up_.wait(); }
  void release() {
    gate_.close();
    down_.wait();
  }

 private:
  channel<int> gate_;
  wait_group up_, down_;
};

class FiberMemory : public RuntimeTest {
 protected:
  void SetUp() override {
#if ULEXITE_ASAN || ULEXITE_TSAN
    GTEST_SKIP() << "a sanitizer's own memory dwarfs that of the fibers";
#endif
    if (!kernel_installs_guards()) GTEST_SKIP() << "no MADV_GUARD_INSTALL here";
    stack_pool::trim_all(true);
  }
  runtime& make_with_small_stacks(std::size_t workers) { return make({.threads = workers, .stack_size = 64 * 1024}); }
};

class FiberMemoryOf : public FiberMemory, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, FiberMemoryOf, testing::Values(1, 4), testing::PrintToStringParamName());

// A page of stack; a block; what describes the stack. 1.1 times the page in all. This includes the memory that the
// runtime takes once: slabs of 256 KiB, and up to 32 stacks that each worker has taken ahead.
TEST_P(FiberMemoryOf, AParkedFiberCostsAPageAndATenth) {
  make_with_small_stacks(GetParam()).run([] {
    const std::size_t resident = resident_bytes(), maps = count_maps();
    crowd parked;
    parked.wait_until_parked();
    EXPECT_LT(per_fiber(resident_bytes(), resident), 1.1 * static_cast<double>(page));
    EXPECT_LT(count_maps(), maps + 400);
    EXPECT_EQ(count_stack_guards().protected_, 0u);
    EXPECT_EQ(count_stack_guards().canaries, 0u);
    parked.release();
  });
  EXPECT_GE(count_stack_guards().installed, many);
}

// A block of 192 bytes. The rest is the unused part of the last chunk of 2 MiB (perhaps a huge page), and the memory
// that the runtime takes once. With one worker, which has no time for them before the spawner waits.
TEST_F(FiberMemory, AFiberThatHasNotStartedCostsItsBlock) {
  make(1).run([] {
    const std::size_t resident = resident_bytes();
    crowd fresh;
    EXPECT_LT(per_fiber(resident_bytes(), resident), 192 + (2 << 20) / static_cast<double>(many) + 8);
    fresh.wait_until_parked();
    fresh.release();
  });
}

// All except the few stacks that each worker keeps. How many a trim cleans says nothing: the monitor may have come
// first, or be at it just now.
TEST_P(FiberMemoryOf, StacksAreGivenBackAfterABurst) {
  std::size_t resident = 0;
  make_with_small_stacks(GetParam()).run([&] {
    crowd burst;
    burst.wait_until_parked();
    resident = resident_bytes();
    burst.release();
  });
  const stack_pool& pool = stack_pool::of_size(64 * 1024);
  EXPECT_LE(pool.carved() - pool.unused(), 64 * GetParam());
  wait_until([&] {
    stack_pool::trim_all(true);
    return per_fiber(resident, resident_bytes()) > 0.95 * static_cast<double>(page);
  });
}

// Does not return normally.
// NOLINTNEXTLINE(misc-no-recursion): that is the test
[[gnu::noinline]] int recurse(int depth) {
  if (depth < 0) return 0;
  volatile char frame[512];
  frame[depth & 511] = static_cast<char>(depth);
  return recurse(depth + 1) + frame[(depth + 1) & 511];
}

void overflow_among_many() {
  runtime rt({.threads = 1, .stack_size = 64 * 1024});
  rt.run([] {
    crowd parked;
    parked.wait_until_parked();
    spawn({.name = "one of many"}, [] { std::exit(recurse(0)); }).join();
  });
}

TEST_F(FiberMemory, AnOverflowAmongManyStacksIsReported) {
  use_threadsafe_death_tests();
  EXPECT_EXIT(overflow_among_many(), KilledBySignal(SIGSEGV),
              "ulexite: stack overflow in fiber #[0-9]+ 'one of many' \\(stack of 65536 bytes");
}

// Without a monitor that would trim later.
TEST(Memory, OfABurstIsGivenBackAtTheRuntimesEnd) {
  constexpr std::size_t size = 64 * 1024;
  runtime({.threads = 2, .stack_size = size}).run([] {
    channel<int> gate;
    task_group burst;
    for (int i = 0; i < 200; ++i) burst.spawn([&] { gate.receive(); });
    this_fiber::yield();
    gate.close();
    burst.wait();
  });
  EXPECT_EQ(stack_pool::of_size(size).trim(true), 0u) << "stacks that had memory";
}

}  // namespace
