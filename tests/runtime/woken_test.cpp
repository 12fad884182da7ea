// Woken fibers run before fibers that have not begun, do not starve them, and take turns.

#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/sync/semaphore.hpp>

#include <algorithm>
#include <chrono>
#include <climits>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Woken : public WorkersTest {};
ULEXITE_TEST_WORKERS(Woken);

// `wait` and `wake` for each of many fibers, then many fibers that have not begun. Returns how many of the new ones
// have begun before most of the woken fibers continue. The main fiber holds its worker until all are woken, so with one
// worker that is exact. On a busy machine the time of a few has come before they wait; then they yield instead.
template <class Wait, class Wake>
int begun_before_most_woken(runtime& rt, Wait wait, Wake wake) {
  constexpr int fresh = 20'000, waiters = 100, most = 90;
  std::atomic<int> begun{0}, begun_before_most{0}, awake{0};
  rt.run([&] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < waiters; ++i)
      all.push_back(spawn([&, i] {
        wait(i);
        if (++awake == most) begun_before_most = begun.load();
      }));
    this_fiber::yield();  // they wait
    for (int i = 0; i < fresh; ++i) all.push_back(spawn([&] { ++begun; }));
    wake();
    for (auto& each : all) each.get();
  });
  return begun_before_most;
}

// More than any batch.
TEST_P(Woken, GoBeforeThoseThatHaveNotBegun) {
  const int begun = begun_before_most_woken(
      rt(), [](int) { this_fiber::sleep_for(20ms); }, [] { std::this_thread::sleep_for(21ms); });
  if (GetParam() == 1) EXPECT_LT(begun, 10'000);
}

TEST_P(Woken, FromOutsideGoBeforeThoseThatHaveNotBegun) {
  std::vector<std::unique_ptr<binary_semaphore>> doors;
  for (int i = 0; i < 100; ++i) doors.push_back(std::make_unique<binary_semaphore>(0));
  const int begun = begun_before_most_woken(
      rt(), [&](int i) { doors[static_cast<std::size_t>(i)]->acquire(); },
      [&] {
        std::thread([&] {
          for (auto& each : doors) each->release();
        }).join();
      });
  if (GetParam() == 1) EXPECT_LT(begun, 10'000);
}

// Some are woken all the time. The others all have their turn.
TEST_P(Woken, DoNotStarveThoseThatHaveNotBegun) {
  std::atomic<int> left{times(5000)};
  run([&] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 200; ++i)
      all.push_back(spawn([&] {
        while (left > 0) this_fiber::sleep_for(1us);
      }));
    for (int i = left; i > 0; --i) all.push_back(spawn([&] { --left; }));
    for (auto& each : all) each.get();
  });
  EXPECT_EQ(left, 0);
}

// They are more than a worker's deque holds. When one has had ten turns since all had one, nearly all have had two. A
// fiber whose time has come before it waits yields, and is in the ring until its next turn. On a busy machine many do
// at their first sleep, where they touch their stack for the first time, so the count begins after it. With a
// shorter time, all would yield under ThreadSanitizer.
TEST_P(Woken, TakeTurns) {
  constexpr int most = 10;
  std::vector<std::atomic<int>> turns(3000);
  std::atomic<std::size_t> begun{0};
  std::atomic<std::ptrdiff_t> without{0};
  std::atomic<bool> ended{false};
  run([&] {
    std::vector<join_handle<>> all;
    for (auto& mine : turns)
      all.push_back(spawn([&] {
        this_fiber::sleep_for(50us);
        ++begun;
        while (!ended) {
          this_fiber::sleep_for(50us);
          if (begun < turns.size() || ++mine < most || ended.exchange(true)) continue;
          without = std::ranges::count_if(turns, [](const auto& had) { return had < 2; });
        }
      }));
    for (auto& each : all) each.get();
  });
  if (GetParam() == 1) EXPECT_LE(without, 10);  // without turns it is hundreds
}

// They are more than a worker's deque holds, and it has others to run all the time.
TEST_P(Woken, GoBeforeThoseThatYield) {
  const int rounds = std::max(times(20'000), 10'000);  // all have begun in half of them
  std::atomic<int> woken{0}, yielded{0}, woken_at_last{0}, yielded_at_last{0};
  std::atomic<bool> ended{false};
  run([&] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 3000; ++i)
      all.push_back(spawn([&] {
        while (!ended) {
          this_fiber::sleep_for(1us);
          if (++woken != rounds) continue;
          woken_at_last = woken - rounds / 2;
          yielded_at_last = yielded.load();
          ended = true;
        }
      }));
    for (int i = 0; i < 50; ++i)
      all.push_back(spawn([&] {
        for (; !ended; this_fiber::yield())
          if (woken > rounds / 2) ++yielded;  // all have begun
      }));
    for (auto& each : all) each.get();
  });
  if (GetParam() == 1) EXPECT_LT(yielded_at_last, woken_at_last);
}

// The turns of fibers that compute for so long each time, while a hundred others are woken 400 times.
long turns_beside_woken(int computing, std::chrono::microseconds quantum) {
  long turns = 0, left = 400;
  runtime({.threads = 1}).run([&] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 100; ++i)
      all.push_back(spawn([&] {
        while (left > 0) {
          this_fiber::sleep_for(1ms);
          if (turns > 0) --left;
        }
      }));
    this_fiber::yield();  // they sleep
    for (int i = 0; i < computing; ++i)
      all.push_back(spawn([&] {
        while (left > 0) {
          ++turns;
          hog_until([] { return false; }, quantum);
          this_fiber::yield();
        }
      }));
    for (auto& each : all) each.get();
  });
  return turns;
}

// The fewest of some runs, because another process that takes the processor takes time of the woken fibers too.
long fewest_turns_beside_woken(int computing, std::chrono::microseconds quantum) {
  long fewest = LONG_MAX;
  for (int run = 0; run < 20 && fewest >= 60; ++run) fewest = std::min(fewest, turns_beside_woken(computing, quantum));
  return fewest;
}

// By number alone the others would have a turn for each three of the woken, 133 in each run.
TEST(WokenBesideLongTurns, HaveAsMuchTime) {
  if (detail::migrating) GTEST_SKIP() << "the fibers have no order";
  EXPECT_LT(fewest_turns_beside_woken(4, 5ms), 60);
  EXPECT_LT(fewest_turns_beside_woken(1100, 2ms), 60) << "more than a ring holds";
}

}  // namespace
