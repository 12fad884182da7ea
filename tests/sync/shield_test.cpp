#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Shield : public WorkersTest {
 protected:
  // Runs `body` in a fiber that was asked to stop.
  template <class F>
  void run_stopped(F body) {
    run([&] {
      auto handle = spawn([&] {
        wait_until([] { return this_fiber::stop_requested(); });
        body();
      });
      handle.request_stop();
      handle.get();
    });
  }
};
ULEXITE_TEST_WORKERS(Shield);

// Cancellation points that have to wait, and that have not.
void pass_cancellation_points() {
  this_fiber::check();
  this_fiber::sleep_for(1us);
  channel<int> values(1);
  values.send(1);
  EXPECT_EQ(values.receive(), 1);
  int into = 0;
  EXPECT_EQ(values.receive_for(into, 1us), channel_status::timeout);
  task_group group;
  if (in_fiber()) group.spawn([] { this_fiber::yield(); });
  group.wait();
}

TEST_P(Shield, MakesAStopInert) {
  run_stopped([] {
    EXPECT_THROW(this_fiber::check(), operation_cancelled);
    {
      const shield uninterrupted;
      EXPECT_TRUE(this_fiber::stop_requested()) << "one may still ask";
      EXPECT_TRUE(this_fiber::get_stop_token().stop_requested());
      pass_cancellation_points();
    }
    EXPECT_THROW(this_fiber::check(), operation_cancelled);
    EXPECT_THROW(this_fiber::sleep_for(1h), operation_cancelled);
  });
}

TEST_P(Shield, HidesAStopThatComesDuringAWait) {
  run([] {
    channel<int> values;
    std::atomic<bool> ready{false};
    auto handle = spawn([&] {
      {
        const shield uninterrupted;
        ready = true;
        EXPECT_EQ(values.receive(), 3);
      }
      EXPECT_THROW(values.receive(), operation_cancelled);
    });
    wait_until([&] { return ready.load(); });
    wait_until_others_wait();
    handle.request_stop();
    wait_until_others_wait();
    EXPECT_FALSE(handle.done());
    values.send(3);
    handle.get();
  });
}

TEST_P(Shield, HidesAStopOfTheWholeRuntime) {
  channel<int> values;
  std::atomic<bool> ready{false};
  auto handle = rt().spawn([&] {
    const shield uninterrupted;
    ready = true;
    return values.receive();
  });
  wait_until([&] { return ready.load(); });
  rt().request_stop();
  values.send(4);
  EXPECT_EQ(handle.get(), 4);
}

// More handles than one fiber waits for.
TEST_P(Shield, HoldsForTheWaitersOfManyHandles) {
  std::atomic<bool> ready{false}, stopped{false};
  auto handle = rt().spawn([&] {
    const shield uninterrupted;
    ready = true;
    event go;
    std::vector<join_handle<int>> all;
    for (int i = 0; i < 200; ++i)
      all.push_back(spawn([&go, i] {
        const shield mine;
        go.wait();
        return i;
      }));
    auto release = spawn([&] {
      const shield mine;
      while (!stopped) this_fiber::sleep_for(1ms);
      go.set();
    });
    const std::size_t results = when_all(all).size();
    release.get();
    return results;
  });
  wait_until([&] { return ready.load(); });
  rt().request_stop();
  stopped = true;
  EXPECT_EQ(handle.get(), 200u);
}

TEST_P(Shield, Nests) {
  run_stopped([] {
    {
      const shield outer;
      {
        const shield inner;
        pass_cancellation_points();
      }
      pass_cancellation_points();
    }
    EXPECT_THROW(this_fiber::check(), operation_cancelled);
  });
}

TEST_P(Shield, HidesDeadlinesFromOutside) {
  const auto body = [] {
    const deadline_scope limit(0s);
    EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    {
      const shield uninterrupted;
      pass_cancellation_points();
      {
        const shield inner;
        pass_cancellation_points();
      }
      pass_cancellation_points();
    }
    EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
  };
  run(body);
  body();
}

TEST_P(Shield, HidesADeadlineThatHasNotBeenNoticedYet) {
  run([] {
    const deadline_scope limit(0s);
    {
      const shield uninterrupted;
      pass_cancellation_points();
    }
    channel<int> values(1);
    values.send(1);  // does not have to wait, and no code has read the clock
    EXPECT_THROW(this_fiber::check(), deadline_exceeded);
  });
}

TEST_P(Shield, ADeadlineInsideWorks) {
  run_stopped([] {
    const deadline_scope limit(1h);
    const shield uninterrupted;
    {
      const deadline_scope inner(1us);
      EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
      EXPECT_TRUE(inner.expired());
      {
        const shield deeper;
        pass_cancellation_points();
      }
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    }
    pass_cancellation_points();
    EXPECT_THROW(timeout(1us, [] { channel<int>().receive(); }), deadline_exceeded);
    pass_cancellation_points();
  });
}

TEST_P(Shield, FibersSpawnedInsideHaveNoDeadlineAndCanBeStopped) {
  run([] {
    const deadline_scope limit(0s);
    const shield uninterrupted;
    spawn(pass_cancellation_points).get();
    std::atomic<bool> ready{false};
    auto child = spawn([&] {
      ready = true;
      wait_for_ever();
    });
    wait_until([&] { return ready.load(); });
    child.request_stop();
    EXPECT_THROW(child.get(), operation_cancelled);
  });
}

TEST_P(Shield, AGroupInsideCanBeStoppedItself) {
  run_stopped([] {
    const shield uninterrupted;
    task_group group;
    for (int i = 0; i < 3; ++i) group.spawn([] { pass_cancellation_points(); });
    group.wait();
    for (int i = 0; i < 3; ++i) group.spawn([] { wait_for_ever(); });
    group.request_stop();
    group.wait();
    EXPECT_EQ(group.failures(), 0u);
  });
}

TEST_P(Shield, ReleasedByAnException) {
  run_stopped([] {
    try {
      const shield uninterrupted;
      throw 1;
    } catch (int) {
    }
    EXPECT_THROW(this_fiber::check(), operation_cancelled);
  });
}

TEST_P(Shield, DoesNotPassToTheNextFiberInTheSameMemory) {
  run([] {
    for (int i = 0; i < 100; ++i) {
      spawn([] {
        const shield uninterrupted;
        this_fiber::yield();
      }).join();
      auto next = spawn([] { wait_for_ever(); });
      if (i % 2 == 0) this_fiber::yield();
      next.request_stop();
      EXPECT_THROW(next.get(), operation_cancelled);
    }
  });
}

}  // namespace
