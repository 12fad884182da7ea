#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class DeadlineHeirs : public WorkersTest {};
ULEXITE_TEST_WORKERS(DeadlineHeirs);

TEST_P(DeadlineHeirs, IsInheritedByChildrenAndGrandchildren) {
  run([] {
    const auto waits = [] { EXPECT_THROW(wait_for_ever(), deadline_exceeded); };
    const deadline_scope limit(1ms);
    auto plain = spawn(waits);
    auto grand = spawn([&] {
      spawn([&] { spawn(waits).get(); }).get();
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    });
    task_group group;
    auto member = group.spawn(waits);
    auto of_own_scope = spawn([&] {
      const deadline_scope own(1h);
      EXPECT_THROW(wait_for_ever(), deadline_exceeded);
      EXPECT_FALSE(own.expired());
    });
    plain.get();
    grand.get();
    member.get();
    of_own_scope.get();
    EXPECT_THROW(when_all([] { wait_for_ever(); }, [] { wait_for_ever(); }), deadline_exceeded);
  });
}

TEST_P(DeadlineHeirs, OfAChildDoesNotEndWithTheScopeNorBindTheParent) {
  run([] {
    join_handle<> child;
    {
      const deadline_scope limit(1ms);
      child = spawn([] { EXPECT_THROW(wait_for_ever(), deadline_exceeded); });
    }
    child.get();
    this_fiber::check();
    spawn([] {
      const deadline_scope limit(0s);
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
    }).get();
    this_fiber::check();
    spawn([] { this_fiber::check(); }).get();
  });
}

TEST_P(DeadlineHeirs, OfAPlainThreadIsInheritedByTheFibersItStarts) {
  const deadline_scope limit(1ms);
  EXPECT_THROW(rt().run([] { wait_for_ever(); }), deadline_exceeded);
  EXPECT_THROW(rt().spawn([] { wait_for_ever(); }).get(), deadline_exceeded);
}

TEST_P(DeadlineHeirs, DoesNotPassToTheNextFiberInTheSameMemory) {
  run([] {
    for (int i = 0; i < 100; ++i) {
      join_handle<> ends;
      {
        const deadline_scope limit(0s);
        ends = spawn([] { this_fiber::check(); });
      }
      EXPECT_THROW(ends.get(), deadline_exceeded);
      spawn([] { this_fiber::check(); }).get();
    }
  });
}

TEST_P(DeadlineHeirs, AStopIsToldBeforeIt) {
  run([] {
    std::atomic<bool> ready{false};
    auto handle = spawn([&] {
      const deadline_scope limit(0s);
      EXPECT_THROW(this_fiber::check(), deadline_exceeded);
      ready = true;
      wait_until([] { return this_fiber::stop_requested(); });
      try {
        this_fiber::check();
      } catch (const operation_cancelled& e) {
        EXPECT_EQ(e.code(), errc::cancelled);
        return 1;
      }
      return 0;
    });
    wait_until([&] { return ready.load(); });
    handle.request_stop();
    EXPECT_EQ(handle.get(), 1);
  });
}

TEST_P(DeadlineHeirs, DestructorsRunWhenItIsMet) {
  run([] {
    std::atomic<int> alive{0};
    auto handle = spawn([&] {
      const counted outside(alive);
      timeout(100us, [&] {
        const counted inside(alive);
        wait_for_ever();
      });
    });
    EXPECT_THROW(handle.get(), deadline_exceeded);
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(DeadlineHeirs, InheritedIsNotReportedButOnesOwnIs) {
  unhandled_log log;
  runtime& rt = make(log.options(GetParam()));
  rt.run([] {
    {
      const deadline_scope limit(1ms);
      spawn({.name = "detached"}, [] { wait_for_ever(); }).detach();
      spawn({.name = "joined"}, [] { wait_for_ever(); }).join();
    }
    const deadline_scope farther(1h);
    spawn({.name = "own"}, [] { timeout(1us, [] { wait_for_ever(); }); }).join();
  });
  end(rt, shutdown_mode::drain);
  EXPECT_EQ(log.names(), std::vector<std::string>{"own"});
}

}  // namespace
