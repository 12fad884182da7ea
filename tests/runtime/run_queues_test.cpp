// The turns that a worker takes among its queues.

#include <ulexite/base/controller.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/worker_parts/run_queues.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace {

using namespace ulexite::detail;

// A job in zeroed memory as large as a task's, because the queues fetch what a task has there.
class fake_task {
 public:
  ulexite::job& item() noexcept { return *reinterpret_cast<ulexite::job*>(memory_.data()); }

 private:
  alignas(task) std::array<std::byte, sizeof(task)> memory_{};
};

// The time is the test's.
class RunQueues : public ::testing::Test, private controller {
 protected:
  RunQueues() {
    now = 1'000'000'000;
    set_this_controller(this);
  }
  ~RunQueues() override { set_this_controller(nullptr); }
  using controller::now;

 private:
  std::size_t pick(std::span<const std::uint64_t> /*candidates*/, moment /*moment*/) noexcept override { return 0; }
  std::uint32_t choose(std::uint32_t /*bound*/) noexcept override { return 0; }
  void yielded(std::uint64_t /*fiber*/) noexcept override {}
  bool idle(std::int64_t /*next*/) noexcept override { return false; }
};

// As the main stack takes it.
ulexite::job* take(run_queues& from) {
  if (ulexite::job* const next = from.next_in_line()) return next;
  intrusive_queue<ulexite::job> pinned;
  from.take_pinned(1, pinned);
  return pinned.pop();
}

TEST_F(RunQueues, PinnedFibersTakeTurnsWithTheWoken) {
  constexpr std::size_t each = 40;
  const auto queues = std::make_unique<run_queues>(true);
  std::array<fake_task, each> pinned, woken, others;
  for (auto& one : pinned) queues->push_pinned(one.item());
  for (auto& one : woken) ASSERT_TRUE(queues->push_woken(one.item()));
  for (auto& one : others) ASSERT_TRUE(queues->push(one.item()));
  const auto is_of = [](std::array<fake_task, each>& kind, const ulexite::job* which) {
    return which >= &kind.front().item() && which <= &kind.back().item();
  };
  int pinned_turns = 0, woken_turns = 0, other_turns = 0;
  for (int i = 0; i < 70; ++i) {
    const ulexite::job* const next = take(*queues);
    ASSERT_NE(next, nullptr);
    pinned_turns += is_of(pinned, next);
    woken_turns += is_of(woken, next);
    other_turns += is_of(others, next);
  }
  EXPECT_EQ(pinned_turns, 30);
  EXPECT_EQ(woken_turns, 30);
  EXPECT_EQ(other_turns, 10);
  for (int i = 0; i < 50; ++i) EXPECT_NE(take(*queues), nullptr);
  EXPECT_EQ(take(*queues), nullptr);
}

// Of 200 spawned fibers 61 have run, and `back` of them have come back into the ring. 1,000 wait elsewhere.
std::size_t given_way(std::size_t back) {
  const auto queues = std::make_unique<run_queues>(true);
  std::array<fake_task, 200> fibers;
  for (auto& one : fibers) EXPECT_TRUE(queues->push(one.item()));
  queues->mark_filled(200, 0);
  for (int i = 0; i < 61; ++i) EXPECT_NE(take(*queues), nullptr);
  for (std::size_t i = 0; i < back; ++i) EXPECT_TRUE(queues->push(fibers[i].item()));
  intrusive_queue<ulexite::job> newest;
  const std::size_t count = queues->take_newest(1000, 200, 61, newest);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(newest.pop(), &fibers[back - count + i].item());
  EXPECT_TRUE(newest.empty());
  return count;
}

TEST_F(RunQueues, OnlyFibersThatTakeTurnsGiveWay) {
  EXPECT_EQ(given_way(0), 0);   // they have ended
  EXPECT_EQ(given_way(30), 0);  // most of them have
  EXPECT_GT(given_way(31), 0);
  EXPECT_GT(given_way(61), given_way(31));
}

// Else those that wait elsewhere would wait for ever, or push out the oldest of the ring.
TEST_F(RunQueues, OneThatCameBackGivesWayInAFullRing) {
  const auto queues = std::make_unique<run_queues>(true);
  std::vector<fake_task> fibers(tuning::ring_size);
  for (auto& one : fibers) EXPECT_TRUE(queues->push(one.item()));
  queues->mark_filled(tuning::ring_size, 0);
  EXPECT_EQ(queues->room(), 0);
  EXPECT_EQ(take(*queues), &fibers[0].item());
  EXPECT_EQ(queues->room(), 0);  // it is kept for spawns
  EXPECT_TRUE(queues->push(fibers[0].item()));
  intrusive_queue<ulexite::job> newest;
  EXPECT_EQ(queues->take_newest(1000, tuning::ring_size, 61, newest), 1);
  EXPECT_EQ(newest.pop(), &fibers[0].item());
}

// Of those that were spawned 200 more have gone to the shared queue.
TEST_F(RunQueues, FibersThatWereSpawnedDoNotGiveWayInAFullRing) {
  const auto queues = std::make_unique<run_queues>(true);
  std::vector<fake_task> fibers(tuning::ring_size + 1);
  EXPECT_EQ(queues->room(), tuning::ring_size - tuning::ring_overflow);
  for (auto& one : fibers)
    while (!queues->push(one.item())) EXPECT_NE(take(*queues), nullptr);
  intrusive_queue<ulexite::job> newest;
  EXPECT_EQ(queues->take_newest(1000, fibers.size() + 200, 61, newest), 0);
  EXPECT_EQ(queues->take_newest(1000, fibers.size(), 61, newest), 0);
}

TEST_F(RunQueues, FibersThatWereSpawnedDoNotGiveWay) {
  const auto queues = std::make_unique<run_queues>(true);
  std::array<fake_task, 200> fibers;
  for (auto& one : fibers) EXPECT_TRUE(queues->push(one.item()));
  intrusive_queue<ulexite::job> newest;
  EXPECT_EQ(queues->take_newest(1000, 200, 61, newest), 0);
  EXPECT_GT(queues->take_newest(1000, 100, 61, newest), 0);
}

// The woken fibers run for 5 us each, and a turn of the ring for `turn`. How many woken fibers run between two turns of
// the ring.
int woken_per_turn(std::int64_t& now, std::int64_t turn) {
  const auto queues = std::make_unique<run_queues>(true);
  std::array<fake_task, 1000> woken;
  std::array<fake_task, 2> ring;
  for (auto& one : woken) EXPECT_TRUE(queues->push_woken(one.item()));
  for (auto& one : ring) EXPECT_TRUE(queues->push(one.item()));
  const auto next = [&] {
    ulexite::job* chosen = queues->next_in_line();
    if (!chosen && queues->maintenance_due()) {
      queues->begin_maintenance(now);
      chosen = queues->next_in_line();
    }
    now += chosen == &ring[0].item() || chosen == &ring[1].item() ? turn : 5'000;
    return chosen;
  };
  while (next() != &ring[0].item()) {
  }
  int count = 0;
  while (next() != &ring[1].item()) ++count;
  return count;
}

TEST_F(RunQueues, WokenFibersHaveAsMuchTimeAsALongTurnOfTheRing) {
  EXPECT_EQ(woken_per_turn(now, 40'000), 3);
  EXPECT_EQ(woken_per_turn(now, 100'000), 23);  // the next turn that is the ring's by number, after 20
  EXPECT_EQ(woken_per_turn(now, 1'000'000), 203);
}

// 10 ms at most.
TEST_F(RunQueues, ATurnOfASecondOwesMuchLess) {
  ring_turn turn;
  turn.begin(now);
  now += 1'000'000'000;
  turn.end(now);
  now += 9'999'999;
  EXPECT_TRUE(turn.woken_are_first());
  now += 1;
  EXPECT_FALSE(turn.woken_are_first());
}

TEST_F(RunQueues, WithoutWokenFibersTheRingOwesNothing) {
  const auto queues = std::make_unique<run_queues>(true);
  std::array<fake_task, 3> ring;
  fake_task woken;
  ASSERT_TRUE(queues->push_woken(woken.item()));
  for (auto& one : ring) ASSERT_TRUE(queues->push(one.item()));
  EXPECT_EQ(take(*queues), &woken.item());
  for (auto& one : ring) {
    EXPECT_EQ(take(*queues), &one.item());
    now += 1'000'000;
    queues->begin_maintenance(now);
    EXPECT_FALSE(queues->has_woken());
  }
}

// While the ring alone has work, it costs no look at the pinned until the maintenance that is asked for them.
TEST_F(RunQueues, PinnedFibersTakeTurnsWithTheRingAfterAVisit) {
  const auto queues = std::make_unique<run_queues>(true);
  std::array<fake_task, 40> ring;
  std::array<fake_task, 2> pinned;
  for (auto& one : ring) ASSERT_TRUE(queues->push(one.item()));
  for (auto& one : pinned) queues->push_pinned(one.item());
  EXPECT_EQ(take(*queues), &ring[0].item());
  queues->on_pinned();
  int turns = 0;
  for (; queues->has_pinned(); ++turns) ASSERT_NE(take(*queues), nullptr);
  EXPECT_LE(turns, 5);
}

}  // namespace
