#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/fiber_local.hpp>
#include <ulexite/sync/task_group.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using std::runtime_error;

class TaskGroup : public WorkersTest {};
ULEXITE_TEST_WORKERS(TaskGroup);

TEST_P(TaskGroup, WaitsForAllItsChildren) {
  run([] {
    task_group group;
    group.wait();
    EXPECT_EQ(group.size(), 0u);
    int sum = 0;  // not atomic: the waits order it
    for (int round = 0; round < times(200); ++round) {
      std::atomic<int> ended{0};
      for (int i = 0; i < 10; ++i)
        group.spawn([&] {
          this_fiber::yield();
          if (++ended == 10) ++sum;
        });
      group.wait();
      EXPECT_EQ(ended, 10);
      EXPECT_EQ(sum, round + 1);
    }
    EXPECT_EQ(group.failures(), 0u);
    EXPECT_EQ(group.size(), 0u);
  });
}

TEST_P(TaskGroup, CountsItsChildren) {
  run([] {
    task_group group;
    channel<int> go;
    for (int i = 0; i < 3; ++i) group.spawn([&] { go.receive(); });
    EXPECT_EQ(group.size(), 3u);
    go.close();
    group.wait();
    EXPECT_EQ(group.size(), 0u);
  });
}

TEST_P(TaskGroup, TheFirstFailureCancelsTheOthersAndIsThrown) {
  run([] {
    std::atomic<int> alive{0}, begun{0};
    task_group group;
    for (int i = 0; i < 5; ++i) group.spawn(waits(alive, begun));
    group.spawn([&] {
      wait_until([&] { return begun == 5; });
      throw runtime_error("first");
    });
    EXPECT_EQ(message_of([&] { group.wait(); }), "first");
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(group.failures(), 1u) << "cancellations by the group are no failures";
    group.wait();  // thrown once
  });
}

TEST_P(TaskGroup, FailuresAfterTheFirstAreCounted) {
  run([] {
    task_group group;
    std::atomic<bool> failed{false};
    for (int i = 0; i < 3; ++i)
      group.spawn([&] {
        try {
          wait_for_ever();
        } catch (const operation_cancelled&) {
          EXPECT_TRUE(failed);
          throw runtime_error("later");
        }
      });
    group.spawn([&] {
      failed = true;
      throw runtime_error("first");
    });
    EXPECT_EQ(message_of([&] { group.wait(); }), "first");
    // A sibling that had not begun when the group failed starts with the request, and so fails too.
    EXPECT_EQ(group.failures(), 4u);
  });
}

TEST_P(TaskGroup, KeepsGoingIfToldSo) {
  run([] {
    task_group group(on_error::keep_going);
    channel<int> values;
    auto fails = group.spawn([] { throw runtime_error("one failed"); });
    fails.join();
    auto receives = group.spawn([&] { return values.receive(); });
    group.spawn([&] {
      EXPECT_FALSE(this_fiber::stop_requested());
      values.send(4);
    });
    EXPECT_EQ(message_of([&] { group.wait(); }), "one failed");
    EXPECT_EQ(receives.get(), 4);
    EXPECT_EQ(group.failures(), 1u);
  });
}

TEST_P(TaskGroup, AnyExceptionIsAFailure) {
  run([] {
    task_group group;
    group.spawn([] { throw 7; });
    EXPECT_THROW(group.wait(), int);
    EXPECT_EQ(group.failures(), 1u);
    task_group other;
    other.spawn([] { throw operation_cancelled(); });  // without a request
    EXPECT_THROW(other.wait(), operation_cancelled);
    EXPECT_EQ(other.failures(), 1u);
  });
}

TEST_P(TaskGroup, AHandleGivesTheResultAndTheFailureToo) {
  run([] {
    task_group group(on_error::keep_going);
    auto value = group.spawn([] { return std::make_unique<int>(3); });
    auto failure = group.spawn([]() -> int { throw runtime_error("mine"); });
    auto added = group.spawn([](int a, std::unique_ptr<int> b) { return a + *b; }, 2, std::make_unique<int>(5));
    auto named = group.spawn({.name = "carol"}, [] { return std::string(this_fiber::name()); });
    EXPECT_EQ(message_of([&] { group.wait(); }), "mine");
    EXPECT_EQ(message_of([&] { failure.get(); }), "mine");
    EXPECT_EQ(*value.get(), 3);
    EXPECT_EQ(added.get(), 7);
    EXPECT_EQ(named.get(), "carol");
  });
}

TEST_P(TaskGroup, ABatchFailsAsItsChildrenDo) {
  run([] {
    task_group group(on_error::keep_going);
    std::atomic<int> calls{0};
    group.spawn_batch(10, [&](std::size_t i) {
      ++calls;
      if (i == 4) throw runtime_error("number four");
      return std::to_string(i);
    });
    EXPECT_EQ(message_of([&] { group.wait(); }), "number four");
    EXPECT_EQ(calls, 10);
    EXPECT_EQ(group.failures(), 1u);
  });
  run([] {
    task_group group;
    std::atomic<int> cancelled{0};
    group.spawn_batch(10, [&](std::size_t i) {
      if (i == 9) throw runtime_error("the last");
      try {
        wait_for_ever();
      } catch (const operation_cancelled&) {
        ++cancelled;
        throw;
      }
    });
    EXPECT_EQ(message_of([&] { group.wait(); }), "the last");
    EXPECT_EQ(cancelled, 9);
  });
}

TEST_P(TaskGroup, TakingTheFailureFromTheHandleLeavesItToTheWait) {
  run([] {
    task_group group;
    auto failure = group.spawn([] { throw runtime_error("both"); });
    EXPECT_EQ(message_of([&] { failure.get(); }), "both");
    EXPECT_EQ(message_of([&] { group.wait(); }), "both");
  });
}

TEST_P(TaskGroup, DestroyedByAnExceptionItCancelsAndReportsNothing) {
  unhandled_log log;
  make(log.options(GetParam())).run([] {
    for (int i = 0; i < times(100); ++i) {
      std::atomic<int> alive{0};
      auto body = [&] {
        task_group group(on_error::keep_going);
        for (int j = 0; j < 4; ++j) group.spawn(waits(alive));
        auto fails = group.spawn([] { throw runtime_error("child"); });
        fails.join();
        throw runtime_error("body");
      };
      EXPECT_EQ(message_of(body), "body");
      EXPECT_EQ(alive, 0);
    }
  });
  EXPECT_EQ(log.names(), std::vector<std::string>());
}

TEST_P(TaskGroup, AFailureNobodyWaitedForIsReportedWithTheChildsName) {
  unhandled_log log;
  make(log.options(GetParam())).run([] {
    task_group group;
    auto child = group.spawn({.name = "dora"}, [] { throw runtime_error("lost"); });
    EXPECT_EQ(message_of([&] { child.get(); }), "lost") << "the group has it all the same";
  });
  EXPECT_EQ(log.names(), std::vector<std::string>{"dora"});
}

TEST_P(TaskGroup, AGroupInADestructorDuringAnExceptionReportsToo) {
  unhandled_log log;
  make(log.options(GetParam())).run([] {
    struct cleaner {
      ~cleaner() {
        task_group group;
        group.spawn({.name = "emil"}, [] { throw runtime_error("lost"); }).join();
      }
    };
    const auto body = [] {
      const cleaner last;
      throw runtime_error("body");
    };
    EXPECT_EQ(message_of(body), "body");
  });
  EXPECT_EQ(log.names(), std::vector<std::string>{"emil"});
}

TEST_P(TaskGroup, WhatAWaitHasThrownIsNotReported) {
  unhandled_log log;
  make(log.options(GetParam())).run([] {
    task_group group;
    group.spawn([] { throw runtime_error("one"); });
    group.spawn([] { throw runtime_error("two"); });
    EXPECT_THROW(group.wait(), runtime_error);
  });
  EXPECT_EQ(log.names(), std::vector<std::string>());
}

// The caller met the deadline and knows it; that its children met the same one is no news.
TEST_P(TaskGroup, ChildrenThatMeetTheCallersDeadlineAreNotReported) {
  unhandled_log log;
  make(log.options(GetParam())).run([] {
    for (int i = 0; i < 20; ++i) {
      task_group group(i % 2 == 0 ? on_error::cancel_siblings : on_error::keep_going);
      const deadline_scope limit(1ms);
      for (int j = 0; j < 3; ++j) group.spawn([] { wait_for_ever(); });
      EXPECT_THROW(group.wait(), deadline_exceeded);
      EXPECT_EQ(group.size(), 0u);
    }
  });
  EXPECT_EQ(log.names(), std::vector<std::string>());
}

TEST_P(TaskGroup, AChildsOwnTimeOutIsAFailure) {
  unhandled_log log;
  make(log.options(GetParam())).run([] {
    {
      task_group().spawn({.name = "before"}, [] {}).join();
    }
    task_group group;
    group.spawn([] { timeout(1us, [] { wait_for_ever(); }); });
    EXPECT_THROW(group.wait(), deadline_exceeded);
    task_group unwaited;
    unwaited.spawn({.name = "fritz"}, [] { timeout(1us, [] { wait_for_ever(); }); }).join();
  });
  EXPECT_EQ(log.names(), std::vector<std::string>{"fritz"});
}

// The value of a fiber_local that the end of a child's function has made goes last of all: here it keeps the child from
// ending.
struct waits_at_last {
  explicit waits_at_last(event& that) : until(that) {}
  waits_at_last(const waits_at_last&) = delete;
  waits_at_last& operator=(const waits_at_last&) = delete;
  ~waits_at_last() { until.wait(); }
  event& until;
};
struct makes_one_at_its_end {
  explicit makes_one_at_its_end(fiber_local<waits_at_last>& that) : what(&that) {}
  makes_one_at_its_end(makes_one_at_its_end&& other) noexcept : what(std::exchange(other.what, nullptr)) {}
  ~makes_one_at_its_end() {
    if (what) what->get();
  }
  fiber_local<waits_at_last>* what;
};

TEST_P(TaskGroup, AnExceptionThatWasHandledIsGoneThoughItsChildHasNotEnded) {
  struct thrown {
    std::shared_ptr<int> token;
  };
  const auto token = std::make_shared<int>(1);
  event handled;
  fiber_local<waits_at_last> last([&] { return waits_at_last(handled); });
  run([&] {
    event handle_is_gone;
    task_group group;
    group.spawn([&, at_end = makes_one_at_its_end(last)] {
      handle_is_gone.wait();
      throw thrown{token};
    });
    handle_is_gone.set();
    EXPECT_THROW(group.wait(), thrown);
    EXPECT_EQ(token.use_count(), 1);
    handled.set();
  });
  end(rt(), shutdown_mode::drain);
}

struct no_copy {
  no_copy() = default;
  no_copy(const no_copy&) { throw runtime_error("no copy"); }
  void operator()() const {}
};

TEST_P(TaskGroup, KeepsItsCountWhenASpawnFails) {
  make({.threads = GetParam(), .max_fibers = 3}).run([] {
    std::atomic<int> alive{0};
    task_group group;
    const auto child = waits(alive);
    group.spawn(child);
    group.spawn(child);
    EXPECT_THROW(group.spawn(child), std::system_error);
    EXPECT_EQ(group.size(), 2u);
    group.request_stop();
    group.wait();
    EXPECT_EQ(alive, 0);
    const no_copy function;
    EXPECT_THROW(group.spawn(function), runtime_error);
    EXPECT_EQ(group.size(), 0u);
    group.wait();
  });
}

TEST_P(TaskGroup, FunctionsAreDestroyedBeforeTheWaitReturns) {
  run([] {
    for (int i = 0; i < times(200); ++i) {
      auto held = std::make_shared<int>(1);
      task_group group;
      for (int j = 0; j < 4; ++j) group.spawn([held] { this_fiber::yield(); });
      group.wait();
      EXPECT_EQ(held.use_count(), 1);
    }
  });
}

// Children end while they are asked to stop, from several sides.
TEST_P(TaskGroup, AFailureAfterAThrownOneIsStillToldByTheNextWait) {
  run([] {
    task_group group(on_error::keep_going);
    group.spawn([] { throw runtime_error("one"); });
    EXPECT_EQ(message_of([&] { group.wait(); }), "one");
    group.spawn([] { throw runtime_error("two"); });
    EXPECT_EQ(message_of([&] { group.wait(); }), "two");
    EXPECT_EQ(group.failures(), 2u);
  });
}

}  // namespace
