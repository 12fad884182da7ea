#include "support/cancellation.hpp"
#include "support/waiting.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/join_set.hpp>
#include <ulexite/sync/task_group.hpp>

#include <stdexcept>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class TaskGroupLimit : public WorkersTest {};
ULEXITE_TEST_WORKERS(TaskGroupLimit);

TEST_P(TaskGroupLimit, BoundsTheChildrenThatRun) {
  for (const std::size_t limit : {1, 3, 8}) {
    run([limit] {
      std::atomic<std::size_t> running{0};
      std::atomic<int> ended{0};
      task_group group(on_error::cancel_siblings, limit);
      const auto work = [&] {
        EXPECT_LE(++running, limit);
        this_fiber::yield();
        --running;
        ++ended;
      };
      for (int i = 0; i < 20; ++i) group.spawn(work);
      group.spawn([&](int) { work(); }, 1);
      group.spawn({.name = "named"}, work);
      group.spawn_batch(20, [&](std::size_t) { work(); });
      group.wait();
      EXPECT_EQ(ended, 42);
      EXPECT_EQ(group.size(), 0U);
    });
  }
}

TEST_P(TaskGroupLimit, OfNoneOrOfANegativeNumberIsRefused) {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{0} - 1, task_group::unlimited + 1}) {
    EXPECT_THROW(task_group(on_error::keep_going, limit), usage_error) << limit;
    EXPECT_THROW(join_set<int>{limit}, usage_error) << limit;
  }
  task_group two(on_error::keep_going, 2);
  EXPECT_THROW(two.spawn_batch(std::size_t{0} - 1, [](std::size_t) {}), usage_error);
}

TEST_P(TaskGroupLimit, TrySpawnDoesNotWait) {
  run([] {
    ulexite::event gate;
    task_group group(on_error::cancel_siblings, 2);
    EXPECT_TRUE(group.try_spawn([&] { gate.wait(); }));
    EXPECT_TRUE(group.try_spawn([&] { gate.wait(); }));
    EXPECT_FALSE(group.try_spawn([] {}));
    EXPECT_FALSE(group.try_spawn_for([] {}, 1us));
    EXPECT_FALSE(group.try_spawn_until([] {}, steady_clock::now()));
    EXPECT_FALSE(group.wait_for(1us));
    gate.set();
    group.wait();
    EXPECT_TRUE(group.wait_for(1h));
    EXPECT_TRUE(group.try_spawn([] {}));
    EXPECT_TRUE(group.try_spawn_for([] {}, 1h));
    task_group free;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(free.try_spawn([] {}));
    free.wait();
  });
}

// The failure of one gives room to the waiting spawner. The child that it then starts is asked to stop immediately.
TEST_P(TaskGroupLimit, AFailureEndsTheWaitForRoom) {
  run([] {
    task_group group(on_error::cancel_siblings, 2);
    group.spawn([] {
      this_fiber::sleep_for(1ms);
      throw std::runtime_error("first");
    });
    group.spawn([] { wait_for_ever(); });
    bool ran = false;
    group.spawn([&] {
      ran = true;
      wait_for_ever();
    });
    EXPECT_EQ(message_of([&] { group.wait(); }), "first");
    EXPECT_TRUE(ran);
  });
}

TEST_P(TaskGroupLimit, TheWaitForRoomIsACancellationPoint) {
  run([] {
    ulexite::event gate;
    task_group group(on_error::keep_going, 1);
    group.spawn([&] { gate.wait(); });
    EXPECT_THROW(timeout(1ms, [&] { group.spawn([] {}); }), deadline_exceeded);
    EXPECT_EQ(group.size(), 1U);
    gate.set();
    group.wait();
    group.spawn([] {}).get();
  });
}

struct throws_when_called_by_bind {
  throws_when_called_by_bind() = default;
  throws_when_called_by_bind(const throws_when_called_by_bind&) { throw std::runtime_error("no copy"); }
  void operator()() const {}
};

TEST_P(TaskGroupLimit, ASpawnThatThrowsGivesItsRoomBack) {
  run([] {
    task_group group(on_error::keep_going, 1);
    const throws_when_called_by_bind function;
    for (int i = 0; i < 3; ++i) EXPECT_THROW(group.spawn(function), std::runtime_error);
    EXPECT_THROW((void)group.try_spawn(function), std::runtime_error);
    group.spawn([] {}).get();
    group.wait();
  });
}

TEST_P(TaskGroupLimit, MaySpawnFromSeveralFibers) {
  run([] {
    std::atomic<int> running{0}, ended{0};
    task_group group(on_error::cancel_siblings, 4), spawners;
    for (int i = 0; i < 8; ++i)
      spawners.spawn([&] {
        for (int k = 0; k < times(50); ++k)
          group.spawn([&] {
            EXPECT_LE(++running, 4);
            this_fiber::yield();
            --running;
            ++ended;
          });
      });
    spawners.wait();
    group.wait();
    EXPECT_EQ(ended, 8 * times(50));
  });
}

}  // namespace
