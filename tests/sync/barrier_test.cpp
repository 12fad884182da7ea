#include "support/crowd.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/barrier.hpp>

#include <functional>

namespace {

using namespace ulexite;
using namespace ulexite::test;

[[maybe_unused]] constinit barrier<> made_at_compile_time(2);  // compiles

class Barrier : public WorkersTest {};
ULEXITE_TEST_WORKERS(Barrier);

TEST_P(Barrier, NobodyLeavesAPhaseBeforeAllHaveArrived) {
  constexpr int fibers = 6, all = 8;
  const int phases = times(300);
  barrier meeting(all);
  long arrived[all] = {};  // not atomic: the phases order it
  const auto work = [&](int me) {
    for (int phase = 1; phase <= phases; ++phase) {
      arrived[me] = phase;
      meeting.arrive_and_wait();
      for (const long each : arrived) EXPECT_EQ(each, phase);
      meeting.arrive_and_wait();
    }
  };
  crowd(rt(), fibers, all - fibers, work).join();
}

TEST_P(Barrier, TheLastToArriveCallsDoneBeforeAnybodyIsReleased) {
  run([] {
    int done = 0;  // not atomic
    const int phases = times(300);
    auto finish = [&]() noexcept {
      this_fiber::yield();
      if (done % 50 == 0) this_fiber::sleep_for(10us);
      ++done;
    };
    barrier meeting(5, finish);
    std::vector<join_handle<>> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(spawn([&] {
        for (int phase = 1; phase <= phases; ++phase) {
          meeting.arrive_and_wait();
          EXPECT_EQ(done, 2 * phase - 1);
          meeting.arrive_and_wait();
          EXPECT_EQ(done, 2 * phase);
        }
      }));
    for (auto& each : all) each.get();
    EXPECT_EQ(done, 2 * phases);
  });
}

TEST_P(Barrier, ATokenWaitsForThePhaseOfItsArrival) {
  run([] {
    barrier meeting(2);
    auto first = meeting.arrive();
    auto other = spawn([&] { meeting.arrive_and_wait(); });
    other.get();
    meeting.wait(std::move(first));
    auto late = meeting.arrive(2);
    auto moved = std::move(late);
    meeting.wait(std::move(moved));
    auto old = meeting.arrive(2);
    for (int i = 0; i < 3; ++i) meeting.wait(meeting.arrive(2));
    meeting.wait(std::move(old));
  });
}

TEST_P(Barrier, WhoDropsOutIsNotExpectedAgain) {
  std::atomic<int> phases{0};
  barrier meeting(3, [&]() noexcept { ++phases; });
  auto one = spawn_until_it_waits(rt(), [&] { meeting.arrive_and_wait(); });
  meeting.arrive_and_drop();
  wait_until_all_wait(rt());
  EXPECT_FALSE(one.done()) << "it is expected in this phase";
  meeting.arrive_and_drop();
  one.get();
  EXPECT_EQ(phases, 1);
  for (int i = 0; i < 3; ++i) meeting.arrive_and_wait();
  EXPECT_EQ(phases, 4);
  meeting.arrive_and_drop();
  EXPECT_EQ(phases, 5);
  EXPECT_THROW(meeting.arrive_and_drop(), usage_error);
  EXPECT_THROW(meeting.arrive_and_wait(), usage_error);
  EXPECT_EQ(phases, 5);
}

TEST_P(Barrier, MisuseIsAUsageErrorAndChangesNothing) {
  EXPECT_THROW(barrier(-1), usage_error);
  barrier meeting(2), elsewhere(1);
  EXPECT_THROW((void)meeting.arrive(0), usage_error);
  EXPECT_THROW((void)meeting.arrive(-1), usage_error);
  EXPECT_THROW((void)meeting.arrive(3), usage_error);
  EXPECT_THROW((void)meeting.arrive(meeting.max()), usage_error);
  EXPECT_THROW(meeting.wait(elsewhere.arrive()), usage_error);
  auto token = meeting.arrive(2);
  meeting.wait(std::move(token));
  EXPECT_THROW(meeting.wait(std::move(token)), usage_error) << "spent";
  meeting.wait(meeting.arrive(2));
}

// An arrival while Done runs is too early: no arrival is missing.
TEST_P(Barrier, AnArrivalOutsideAPhaseIsAUsageError) {
  run([] {
    std::atomic<bool> refused{false};
    std::function<void()> arrive;
    barrier meeting(1, [&]() noexcept {
      try {
        arrive();
      } catch (const usage_error&) {
        refused = true;
      }
    });
    arrive = [&] { (void)meeting.arrive(); };
    meeting.arrive_and_wait();
    EXPECT_TRUE(refused);
  });
}

TEST_P(Barrier, ACancelledArriveAndWaitHasArrived) {
  int phases = 0;
  barrier meeting(3, [&]() noexcept { ++phases; });
  expect_stop_ends(rt(), [&] { meeting.arrive_and_wait(); });
  expect_stop_forbids(rt(), [&] { meeting.arrive_and_wait(); });
  EXPECT_EQ(phases, 0);
  meeting.arrive_and_wait();
  EXPECT_EQ(phases, 1);
}

TEST_P(Barrier, AfterACancelledWaitADropLeaves) {
  std::atomic<int> phases{0};
  barrier meeting(3, [&]() noexcept { ++phases; });
  auto leaver = spawn_until_it_waits(rt(), [&] {
    auto token = meeting.arrive();
    try {
      meeting.wait(std::move(token));
    } catch (const operation_cancelled&) {
      meeting.drop(std::move(token));
      EXPECT_THROW(meeting.drop(std::move(token)), usage_error);
      throw;
    }
  });
  leaver.request_stop();
  EXPECT_THROW(leaver.get(), operation_cancelled);
  EXPECT_THROW((void)meeting.arrive(3), usage_error);
  auto other = spawn_until_it_waits(rt(), [&] { meeting.arrive_and_wait(); });
  EXPECT_EQ(phases, 0) << "two of three have arrived";
  meeting.arrive_and_wait();
  other.get();
  EXPECT_EQ(phases, 1);
  meeting.wait(meeting.arrive(2));
  EXPECT_EQ(phases, 2) << "two are expected";
}

TEST_P(Barrier, ADropForAPhaseThatIsOverArrives) {
  run([] {
    int phases = 0;
    barrier meeting(2, [&]() noexcept { ++phases; });
    auto mine = meeting.arrive(), last = meeting.arrive();
    meeting.drop(std::move(mine));
    EXPECT_EQ(phases, 1);
    meeting.arrive_and_wait();
    EXPECT_EQ(phases, 2);
    meeting.arrive_and_wait();
    EXPECT_EQ(phases, 3);
    meeting.drop(std::move(last));
    EXPECT_EQ(phases, 4);
    EXPECT_THROW((void)meeting.arrive(), usage_error);
    EXPECT_THROW(meeting.drop(barrier<>(1).arrive()), usage_error);
  });
}

TEST_P(Barrier, AWaitThatThrowsLeavesItsToken) {
  run([] {
    barrier<> meeting(2);
    auto token = meeting.arrive();
    for (int i = 0; i < 2; ++i) EXPECT_THROW(timeout(1us, [&] { meeting.wait(std::move(token)); }), deadline_exceeded);
    auto other = spawn([&] { meeting.arrive_and_wait(); });
    meeting.wait(std::move(token));
    EXPECT_THROW(meeting.wait(std::move(token)), usage_error);
    other.join();
    token = meeting.arrive(2);
    meeting.wait(std::move(token));
    EXPECT_THROW(meeting.wait(std::move(token)), usage_error) << "of a phase that was over";
  });
}

TEST_P(Barrier, DoneIsNotDisturbedByAStop) {
  bool slept = false;
  barrier meeting(1, [&]() noexcept {
    this_fiber::sleep_for(1us);
    this_fiber::check();
    slept = true;
  });
  expect_stop_forbids(rt(), [&] { meeting.arrive_and_wait(); });
  EXPECT_TRUE(slept);
  run([&] {
    const deadline_scope over(0s);
    EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
    EXPECT_THROW(meeting.arrive_and_wait(), deadline_exceeded);
  });
}

TEST_P(Barrier, DoneMayBeMoveOnly) {
  run([] {
    auto count = std::make_unique<int>(0);
    int* const seen = count.get();
    barrier meeting(1, [count = std::move(count)]() noexcept { ++*count; });
    meeting.arrive_and_wait();
    meeting.arrive_and_wait();
    EXPECT_EQ(*seen, 2);
  });
}

// A waiter leaves by cancellation while the phase ends.
TEST_P(Barrier, CancellationsRaceWithTheEndOfThePhase) {
  run([] {
    barrier meeting(2);
    for (int i = 0; i < times(2000); ++i) {
      auto waiter = spawn([&] { meeting.arrive_and_wait(); });
      if (i % 2 == 0) this_fiber::yield();
      auto other = spawn([&] { meeting.arrive_and_wait(); });
      waiter.request_stop();
      other.get();
      try {
        waiter.get();
      } catch (const operation_cancelled&) {
      }
    }
  });
}

}  // namespace
