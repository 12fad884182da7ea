#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/task_group.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using std::runtime_error;

class TaskGroupStop : public WorkersTest {};
ULEXITE_TEST_WORKERS(TaskGroupStop);

TEST_P(TaskGroupStop, OneChildCancelledByItsHandleIsSilent) {
  run([] {
    task_group group;
    auto one = group.spawn([] { wait_for_ever(); });
    std::atomic<bool> done{false};
    group.spawn([&] {
      wait_until([&] { return done.load(); });
      this_fiber::check();
    });
    one.request_stop();
    EXPECT_THROW(one.get(), operation_cancelled);
    done = true;
    group.wait();
    EXPECT_EQ(group.failures(), 0u);
  });
}

TEST_P(TaskGroupStop, DestroyedEarlyItRequestsStopAndWaits) {
  run([] {
    std::atomic<int> alive{0}, begun{0};
    {
      task_group group;
      for (int i = 0; i < 5; ++i) group.spawn(waits(alive, begun));
      wait_until([&] { return begun == 5; });
      for (int i = 0; i < 5; ++i) group.spawn(waits(alive));
    }
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(TaskGroupStop, ItsDestructorWaitsInACancelledFiberToo) {
  run([] {
    std::atomic<int> alive{0};
    std::atomic<bool> ready{false};
    auto handle = spawn([&] {
      task_group group;
      for (int i = 0; i < 3; ++i)
        group.spawn([&] {
          const counted here(alive);
          ready = true;
          try {
            wait_for_ever();
          } catch (const operation_cancelled&) {
            for (int j = 0; j < 20; ++j) this_fiber::yield();
            throw;
          }
        });
      wait_for_ever();
    });
    wait_until([&] { return ready.load(); });
    handle.request_stop();
    EXPECT_THROW(handle.get(), operation_cancelled);
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(TaskGroupStop, CancellingTheParentCancelsGrandchildren) {
  run([] {
    std::atomic<int> alive{0}, begun{0};
    const auto leaf = waits(alive, begun);
    const auto node = [&] {
      const counted here(alive);
      task_group group;
      for (int i = 0; i < 3; ++i) group.spawn(leaf);
      group.wait();
    };
    auto root = spawn([&] {
      task_group group;
      for (int i = 0; i < 3; ++i) group.spawn(node);
      group.wait();
    });
    wait_until([&] { return begun == 9; });
    EXPECT_EQ(alive, 12);
    root.request_stop();
    EXPECT_THROW(root.get(), operation_cancelled);
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(TaskGroupStop, AFailureDeepInsideCancelsTheWholeTree) {
  run([] {
    std::atomic<int> alive{0}, begun{0};
    const auto tree = [&](auto& self, int depth, bool fails) -> void {
      const counted here(alive);
      if (depth == 0) {
        ++begun;
        if (!fails) wait_for_ever();
        wait_until([&] { return begun == 8; });
        throw runtime_error("leaf");
      }
      task_group group;
      group.spawn([&] { self(self, depth - 1, fails); });
      group.spawn([&] { self(self, depth - 1, false); });
      group.wait();
    };
    EXPECT_EQ(message_of([&] { tree(tree, 3, true); }), "leaf");
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(TaskGroupStop, AChildMayAddSiblings) {
  run([] {
    std::atomic<int> ran{0};
    task_group group;
    const auto grow = [&](auto& self, int depth) -> void {
      ++ran;
      if (depth == 0) return;
      for (int i = 0; i < 2; ++i) group.spawn([&self, depth] { self(self, depth - 1); });
    };
    group.spawn([&] { grow(grow, 5); });
    group.wait();
    EXPECT_EQ(ran, 63);
  });
}

TEST_P(TaskGroupStop, ChildrenAddedAfterTheStopStartStopped) {
  run([] {
    task_group group;
    EXPECT_TRUE(group.request_stop());
    EXPECT_FALSE(group.request_stop());
    std::atomic<int> ran{0};
    for (int i = 0; i < 3; ++i)
      group.spawn([&](std::stop_token token) {
        EXPECT_TRUE(this_fiber::stop_requested());
        EXPECT_TRUE(token.stop_requested());
        ++ran;
        this_fiber::check();
        ADD_FAILURE() << "went on";
      });
    group.wait();
    EXPECT_EQ(ran, 3);
    EXPECT_EQ(group.failures(), 0u);
  });
}

TEST_P(TaskGroupStop, ReachesChildrenThatHaveNotStarted) {
  run([] {
    task_group group;
    std::vector<join_handle<void>> children;
    for (int i = 0; i < 20; ++i) children.push_back(group.spawn([] { this_fiber::sleep_for(1h); }));
    group.request_stop();
    for (const auto& child : children) EXPECT_TRUE(child.get_stop_token().stop_requested());
    group.wait();
  });
}

TEST_P(TaskGroupStop, TokensFollowIt) {
  run([] {
    std::stop_token before, after;
    {
      task_group group;
      before = group.get_stop_token();
      int fired = 0;
      const std::stop_callback count(before, [&] { ++fired; });
      EXPECT_TRUE(before.stop_possible());
      EXPECT_FALSE(before.stop_requested());
      EXPECT_TRUE(group.request_stop());
      group.request_stop();
      EXPECT_TRUE(before.stop_requested());
      EXPECT_EQ(fired, 1);
      after = group.get_stop_token();
      EXPECT_TRUE(after.stop_requested());
      EXPECT_EQ(before, after);
    }
    EXPECT_TRUE(before.stop_requested());
    task_group late;
    late.request_stop();
    EXPECT_TRUE(late.get_stop_token().stop_requested());
    std::stop_token of_destroyed;
    {
      task_group ends;
      of_destroyed = ends.get_stop_token();
    }
    EXPECT_TRUE(of_destroyed.stop_requested());
  });
}

TEST_P(TaskGroupStop, MayBeWaitedForOnAPlainThread) {
  std::atomic<int> alive{0};
  std::atomic<bool> fail{false};
  task_group group;
  rt().spawn([&] {
        for (int i = 0; i < 4; ++i) group.spawn(waits(alive));
        group.spawn([&] {
          wait_until([&] { return fail.load(); });
          throw runtime_error("for the thread");
        });
      })
      .get();
  EXPECT_THROW(group.spawn([] {}), std::system_error) << "there is no runtime here";
  fail = true;
  EXPECT_EQ(message_of([&] { group.wait(); }), "for the thread");
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(group.failures(), 1u);
}

TEST_P(TaskGroupStop, MayBeDestroyedOnAPlainThread) {
  std::atomic<int> alive{0};
  {
    task_group group;
    run([&] {
      for (int i = 0; i < 4; ++i) group.spawn(waits(alive));
    });
  }
  EXPECT_EQ(alive, 0);
}

TEST_P(TaskGroupStop, ReportsAFailureAfterItsRuntimeHasGone) {
  unhandled_log log;
  {
    task_group group;
    {
      runtime brief(log.options(GetParam()));
      brief.run([&] { group.spawn({.name = "left behind"}, [] { throw runtime_error("x"); }); });
    }
    EXPECT_EQ(group.failures(), 1u);
    EXPECT_TRUE(log.names().empty());
  }
  EXPECT_EQ(log.names(), std::vector<std::string>{"left behind"});
}

TEST_P(TaskGroupStop, StopsRaceWithEnds) {
  run([] {
    for (int i = 0; i < times(500); ++i) {
      task_group group(i % 2 == 0 ? on_error::keep_going : on_error::cancel_siblings);
      for (int j = 0; j < 4; ++j)
        group.spawn([j](std::stop_token token) {
          const std::stop_callback nothing(token, [] {});
          if (j % 2 == 0) this_fiber::yield();
          if (j == 3) throw runtime_error("end");
          this_fiber::sleep_for(std::chrono::microseconds(j * 5));
        });
      auto other = spawn([&] { group.request_stop(); });
      if (i % 3 == 0) group.request_stop();
      EXPECT_EQ(message_of([&] { group.wait(); }), "end");
      EXPECT_EQ(group.failures(), 1u);
      other.join();
    }
  });
}

TEST_P(TaskGroupStop, AWaitThatIsCancelledCancelsTheChildrenAndAwaitsThem) {
  run([] {
    std::atomic<int> alive{0}, begun{0};
    auto caller = spawn([&] {
      task_group group;
      for (int i = 0; i < 3; ++i) group.spawn(waits(alive, begun));
      EXPECT_THROW(group.wait(), operation_cancelled);
      EXPECT_EQ(alive, 0);
      EXPECT_EQ(group.failures(), 0u);
      EXPECT_THROW(group.wait(), operation_cancelled) << "sticky";
    });
    wait_until([&] { return begun == 3; });
    caller.request_stop();
    caller.get();
  });
}

}  // namespace
