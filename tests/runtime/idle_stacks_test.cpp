// Fibers that were deep in calls once and then wait give that memory back, and nothing else.

#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/inspection.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <numeric>
#include <stdexcept>

#include <alloca.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

constexpr std::size_t deep = 512 * 1024, stack_size = 2 * deep;
constexpr std::size_t most_kept = 16 * 1024;  // of a waiting fiber's stack, with the frames of sanitizers

// Calls `function` at the end of `deep` bytes of stack, which it touches.
template <class F>
[[gnu::noinline]] void call_deep(F&& function) {
  auto* const room = static_cast<volatile char*>(alloca(deep));
  for (std::size_t i = 0; i < deep; i += 1024) room[deep - 1 - i] = static_cast<char>(i >> 10);
  function();
  for (std::size_t i = 0; i < deep; i += 1024) EXPECT_EQ(room[deep - 1 - i], static_cast<char>(i >> 10));
}

std::size_t touched_by_this_fiber() {
  return detail::stack_high_water(*static_cast<detail::task&>(detail::this_agent().fiber()).current_stack);
}

class IdleStacks : public WorkersTest {
 protected:
  void SetUp() override {
    if (!detail::inspection::possible()) GTEST_SKIP() << "no membarrier here";
  }
  runtime& make_trimming() {
    return make({.threads = GetParam(), .stack_size = stack_size, .trim_stacks_after = 10ms});
  }
};
ULEXITE_TEST_WORKERS(IdleStacks);

// Their frames, which are above, stay as they are. Twice, because a fiber is looked at once in each of its waits.
TEST_P(IdleStacks, GiveBackWhatTheirFibersNoLongerUse) {
  constexpr std::size_t fibers = 20;  // so few that the sum shows whether one is missing
  runtime& rt = make_trimming();
  event go[2];
  wait_group done;
  std::uint64_t trimmed = 0;
  const auto fiber = [&] {
    std::array<unsigned, 64> own;
    std::iota(own.begin(), own.end(), 7u);
    for (event& each : go) {
      call_deep([] { EXPECT_GT(touched_by_this_fiber(), deep); });
      each.wait();
      EXPECT_LT(touched_by_this_fiber(), most_kept);
      for (unsigned i = 0; i < own.size(); ++i) EXPECT_EQ(own[i], i + 7);
    }
    done.done();
  };
  done.add(fibers);
  for (std::size_t i = 0; i < fibers; ++i) rt.spawn(fiber).detach();
  for (event& each : go) {
    const std::uint64_t before = trimmed;
    wait_until([&] {
      trimmed = rt.metrics().stack_bytes_trimmed;
      return trimmed >= before + fibers * (deep - most_kept);
    });
    each.set();
  }
  done.wait();
}

// The fiber's record says where it waited last, far above the frames in which it is now.
TEST_P(IdleStacks, OfFibersThatBlockInPlaceStayAsTheyAre) {
  runtime& rt = make_trimming();
  const auto trimmed = [&] { return rt.metrics().stack_bytes_trimmed; };
  std::atomic<int> parked{0};
  event go;
  auto blocks = rt.spawn([&] {
    this_fiber::sleep_for(1ms);
    call_deep([&] {
      block_in_place([&] {
        const std::uint64_t before = trimmed();
        parked = 1;
        wait_until([&] { return trimmed() >= before + deep - most_kept; });
      });
    });
  });
  auto waits = rt.spawn([&] {
    while (parked == 0) this_fiber::sleep_for(1ms);
    call_deep([] {});
    go.wait();
  });
  blocks.join();
  go.set();
  waits.join();
}

// The other runtime is the clock.
TEST_P(IdleStacks, StayAsTheyAreWithoutTheOption) {
  runtime& off = make({.threads = GetParam(), .stack_size = stack_size, .trim_stacks_after = 0ms});
  runtime& on = make_trimming();
  event go;
  const auto fiber = [&] {
    call_deep([] {});
    go.wait();
    return touched_by_this_fiber();
  };
  auto keeps = off.spawn(fiber);
  wait_until_all_wait(off);
  auto gives = on.spawn(fiber);
  wait_until([&] { return on.metrics().stack_bytes_trimmed > 0; });
  go.set();
  EXPECT_GT(keeps.get(), deep);
  EXPECT_LT(gives.get(), most_kept);
  EXPECT_EQ(off.metrics().stack_bytes_trimmed, 0u);
}

TEST_P(IdleStacks, TimeMustNotBeNegative) {
  EXPECT_THROW(make({.threads = GetParam(), .trim_stacks_after = -1ms}), std::invalid_argument);
}

}  // namespace
