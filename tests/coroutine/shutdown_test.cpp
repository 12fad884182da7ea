// The end of a runtime, in all modes, while its coroutines run and wait.

#include "support/cancellation.hpp"
#include "ways.hpp"

#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoShutdown : public WorkersTest {};
ULEXITE_TEST_WORKERS(CoShutdown);

TEST_P(CoShutdown, DrainWaitsUntilAllHaveEnded) {
  std::atomic<int> ended{0}, alive{0};
  for (int i = 0; i < 20; ++i)
    rt().spawn([&, i]() -> task<> {
          const lives here(alive);
          co_await co_sleep_for(std::chrono::microseconds(100 * i));
          EXPECT_FALSE(this_fiber::stop_requested());
          spawn([&]() -> task<> {
            co_await co_sleep_for(1ms);
            ++ended;
          }).detach();
        })
        .detach();
  EXPECT_EQ(end(rt(), shutdown_mode::drain), 0u);
  EXPECT_EQ(ended, 20);
  EXPECT_EQ(alive, 0);
}

TEST_P(CoShutdown, CancelEndsAllAndDestroysTheirFrames) {
  std::atomic<int> alive{0}, begun{0}, cancelled{0};
  channel<int> never;
  for (int i = 0; i < 100; ++i)
    rt().spawn([&, mine = lives(alive)]() -> task<> {
          const lives here(alive);
          ++begun;
          try {
            (void)co_await co_receive(never);
          } catch (const operation_cancelled&) {
            ++cancelled;
            throw;
          }
        })
        .detach();
  wait_until([&] { return begun == 100; });
  EXPECT_EQ(end(rt(), shutdown_mode::cancel), 0u);
  EXPECT_EQ(cancelled, 100);
  EXPECT_EQ(alive, 0);
}

TEST_P(CoShutdown, CancelWaitsForADestructorThatTakesItsTime) {
  std::atomic<int> alive{0}, begun{0};
  for (int i = 0; i < 10; ++i)
    rt().spawn([&]() -> task<> {
          const counted here(alive);
          const auto child = [&]() -> task<> {
            const counted there(alive);
            ++begun;
            co_await co_sleep_for(1h);
          };
          co_await child();
        })
        .detach();
  wait_until([&] { return begun == 10; });
  EXPECT_EQ(end(rt(), shutdown_mode::cancel), 0u);
  EXPECT_EQ(alive, 0);
}

// Those that have not begun still have their closures, which are destroyed.
TEST_P(CoShutdown, StopDestroysWhatHasNotBegun) {
  std::atomic<int> alive{0};
  std::atomic<bool> begun{false}, over{false};
  runtime& ends = make(1);
  auto hog = ends.spawn([&] {
    begun = true;
    hog_until([&] { return over.load(); });
  });
  wait_until([&] { return begun.load(); });
  const auto keep = [](lives) -> task<> { co_return; };
  for (int i = 0; i < 20; ++i) co_spawn(ends, keep(lives(alive))).detach();
  EXPECT_EQ(alive, 20);
  std::thread stops([&] { end(ends, shutdown_mode::abandon); });
  while (true) {  // the shutdown has begun when a spawn from outside is refused
    try {
      ends.spawn([mine = lives(alive)]() -> task<> { co_return; }).detach();
      std::this_thread::yield();
    } catch (const usage_error&) {
      break;
    }
  }
  over = true;
  stops.join();
  EXPECT_EQ(alive, 0);
  hog.detach();
}

// Locks, groups, contexts and queues in the frames of those that wait: none is touched again.
TEST_P(CoShutdown, StopKeepsTheFramesOfThoseThatWait) {
  static mutex locked, other;
  static condition_variable changed;
  static channel<int> never;
  std::atomic<int> waiting{0};
  runtime& ends = make(GetParam());
  const auto wait = [&](auto body) {
    ends.spawn([&waiting, body]() -> task<> {
          ++waiting;
          return body();
        })
        .detach();
  };
  wait([]() -> task<> {
    const auto lock = co_await co_lock(locked);
    (void)co_await co_receive(never);
  });
  wait([]() -> task<> {
    auto lock = co_await co_lock(other);
    co_await co_wait(changed, lock);
  });
  wait([]() -> task<> {
    const no_migration_scope pinned;
    const shield unheard;
    const deadline_scope limit(1h);
    co_await co_sleep_for(1h);
  });
  wait([]() -> task<> {
    concurrent_context strand;
    strand.spawn([]() -> task<> { (void)co_await co_receive(never); }).detach();
    (void)co_await co_receive(never);
  });
  wait([]() -> task<> {
    task_group group;
    channel<int> mine;  // a queue in one frame, with a waiter of another
    group.spawn([&]() -> task<> { (void)co_await co_receive(mine); });
    co_await co_wait(group);
  });
  wait([]() -> task<> {
    task_group group;
    group.spawn([]() -> task<> { co_await co_sleep_for(1h); });
    co_await co_wait(group);
  });
  wait_until([&] { return waiting == 6; });
  wait_until_all_wait(ends);
  EXPECT_EQ(end(ends, shutdown_mode::abandon), 9u);
  EXPECT_TRUE(other.try_lock()) << "it waits without the mutex";
  other.unlock();
  int value = 1;
  EXPECT_EQ(never.try_send(value), channel_status::would_block) << "nobody is there";
}

TEST_P(CoShutdown, HandlesOfThoseThatWereStoppedThrow) {
  channel<int> never;
  runtime& ends = make(GetParam());
  auto waits = spawn_until_it_waits(ends, [&]() -> task<> { (void)co_await co_receive(never); });
  EXPECT_EQ(end(ends, shutdown_mode::abandon), 1u);
  EXPECT_TRUE(waits.done());
  EXPECT_THROW(waits.get(), operation_cancelled);
}

TEST_P(CoShutdown, WhileTheyAreBusy) {
  for (const shutdown_mode mode : {shutdown_mode::cancel, shutdown_mode::abandon}) {
    for (int round = 0; round < times(20); ++round) {
      static channel<int> ring(2);
      std::atomic<int> moves{0};
      {
        runtime& ends = make(GetParam());
        for (int i = 0; i < 8; ++i)
          ends.spawn([&moves, i]() -> task<> {
                for (;;) {
                  ++moves;
                  if (i % 2) {
                    co_await co_send(ring, 1);
                  } else {
                    (void)co_await co_receive(ring);
                  }
                  if (i % 3 == 0) co_await co_sleep_for(1us);
                }
              })
              .detach();
        wait_until([&] { return moves > 20 * round; });
        end(ends, mode);
      }
      int value = 1;
      while (ring.try_receive(value) == channel_status::ok) {
      }
    }
  }
}

}  // namespace
