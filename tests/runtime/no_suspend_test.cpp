// no_suspend_scope: what would have to wait throws, and says where. on_thread_stack: a call on the thread's own stack.

#include "support/refused_wait.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/concurrent_context.hpp>
#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/runtime/stopped_world.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/future.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <vector>

#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class NoSuspend : public WorkersTest {};
ULEXITE_TEST_WORKERS(NoSuspend);

TEST_P(NoSuspend, UnderAShieldItRefusesToo) {
  run([&] {
    const shield hidden;
    channel<int> empty;
    mutex locked;
    expect_refused([&] { static_cast<void>(empty.receive()); }, "to receive from channel");
    expect_refused([&] { this_fiber::sleep_for(1h); }, "in a sleep");
    auto sender = spawn([&] { empty.send(9); });
    EXPECT_EQ(empty.receive(), 9);
    sender.get();
  });
}

TEST_P(NoSuspend, ARefusalNamesTheOutermostScope) {
  run([&] {
    const std::string place = "no_suspend_test.cpp:" + std::to_string(__LINE__ + 2);
    try {
      const no_suspend_scope outer;
      {
        const no_suspend_scope inner("an inner scope");
      }
      this_fiber::sleep_for(1h);
      ADD_FAILURE();
    } catch (const usage_error& refused) {
      EXPECT_NE(std::string(refused.what()).find(place), std::string::npos) << refused.what();
    }
  });
}

TEST_P(NoSuspend, ARefusalChangesNothing) {
  run([&] {
    promise<int> later;
    auto future = later.get_future();
    {
      const no_suspend_scope stays;
      EXPECT_THROW(static_cast<void>(future.get()), usage_error);
    }
    later.set_value(3);
    EXPECT_EQ(future.get(), 3);

    concurrent_context context;
    bool ran = false;
    {
      const no_suspend_scope stays;
      EXPECT_THROW(run_in(context, [&] { ran = true; }), usage_error);
    }
    context.spawn([] {}).get();
    EXPECT_FALSE(ran);

    auto sleeper = spawn([] { this_fiber::sleep_for(1h); });
    channel<int> ready(1);
    ready.send(1);
    {
      const no_suspend_scope stays;
      EXPECT_EQ(select(on_join(sleeper), otherwise()), 1u);
      EXPECT_EQ(select(on_join(sleeper), on_receive(ready)), 1u);
    }
    sleeper.request_stop();
    EXPECT_THROW(sleeper.get(), operation_cancelled);
  });
}

TEST_P(NoSuspend, TheLastScopeToEndEndsIt) {
  run([&] {
    channel<int> empty;
    std::optional<no_suspend_scope> inner;
    {
      const no_suspend_scope outer;
      inner.emplace();
    }
    EXPECT_THROW(static_cast<void>(empty.receive()), usage_error);
    inner.reset();
    int item = 0;
    EXPECT_EQ(empty.receive_for(item, 1ms), channel_status::timeout);
  });
}

TEST_P(NoSuspend, WhatNeedNotWaitGoesOn) {
  run([&] {
    channel<int> box(1);
    mutex free;
    std::atomic<int> others = 0;
    auto other = spawn([&] { ++others; });
    const int before = others;
    {
      const no_suspend_scope stays;
      const no_suspend_scope nested;
      box.send(1);
      EXPECT_EQ(box.receive(), 1);
      const std::lock_guard lock(free);
      for (int i = 0; i < 1000; ++i) this_fiber::yield();
      if (GetParam() == 1) EXPECT_EQ(others, before) << "nobody else ran on this worker";
      EXPECT_NE(this_fiber::id(), 0U);
      EXPECT_EQ(spawn([] { return 1; }).joinable(), true);
    }
    other.get();
    EXPECT_EQ(others, 1);
  });
}

TEST_P(NoSuspend, TheEndOfOthersIsNotWaitedFor) {
  run([&] {
    runtime other({.threads = 1});
    expect_refused([&] { other.run([] {}); }, "waits for the end of fiber");
    other.run([] {});
    concurrent_context context;
    event over;
    auto member = context.spawn([&] { over.wait(); });
    expect_refused([&] { context.wait(); }, "waits for the fibers of context");
    over.set();
    context.wait();
    member.get();
  });
}

// A refusal in the midst would end the frame that the children use.
TEST_P(NoSuspend, WhatWaitsForItsChildrenStartsNone) {
  run([&] {
    int calls = 0;
    const auto call = [&] { ++calls; };
    std::vector<std::function<void()>> many(100, call);
    expect_refused([&] { when_all(call, call); }, "waits for the fibers of task_group");
    expect_refused([&] { when_any(call, call); }, "waits for the fibers of task_group");
    expect_refused([&] { when_all(many); }, "waits for the fibers of task_group");
    expect_refused([&] { when_any(many); }, "waits for the fibers of task_group");
    expect_refused([&] { scope([&](task_group& group) { group.spawn(call); }); }, "waits for the fibers of task_group");
    EXPECT_EQ(calls, 0);

    event over;
    std::vector<join_handle<>> handles;
    for (int i = 0; i < 100; ++i) handles.push_back(spawn([&] { over.wait(); }));
    expect_refused([&] { when_all(handles); }, "waits in a select under the no_suspend_scope");
    handles.push_back(spawn([] {}));
    handles.back().join();
    expect_refused([&] { when_any(handles); }, "waits for the end of fiber");
    for (const auto& each : handles) EXPECT_TRUE(each.joinable());
    over.set();
    when_all(handles);
  });
}

TEST_P(NoSuspend, AStopComesFirst) {
  auto handle = rt().spawn([] {
    wait_until([] { return this_fiber::stop_requested(); });
    const no_suspend_scope stays;
    this_fiber::sleep_for(1h);
  });
  handle.request_stop();
  EXPECT_THROW(handle.get(), operation_cancelled);
}

TEST(NoSuspend, OnAPlainThreadItIsNothing) {
  const no_suspend_scope stays;
  event set(true);
  set.wait();
  EXPECT_FALSE(event().wait_for(1ms));
}

class OnThreadStack : public WorkersTest {};
ULEXITE_TEST_WORKERS(OnThreadStack);

[[gnu::noinline]] std::size_t depth_of(std::size_t left) {
  char room[1024];
  room[left % sizeof room] = 1;
  asm volatile("" : : "r"(room) : "memory");
  return left == 0 ? 0 : 1 + depth_of(left - 1);
}

TEST_P(OnThreadStack, HasRoom) {
  run([&] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 20; ++i)
      all.push_back(spawn([] {
        ASSERT_TRUE(stack_around(__builtin_frame_address(0)));
        for (int round = 0; round < 20; ++round) {
          const auto deep = on_thread_stack([] {
            EXPECT_FALSE(stack_around(__builtin_frame_address(0))) << "it stands on a fiber's stack";
            return depth_of(2000);  // 2 MiB
          });
          EXPECT_EQ(deep, 2000U);
          this_fiber::yield();
        }
      }));
    for (auto& each : all) each.get();
  });
}

TEST_P(OnThreadStack, ValuesReferencesAndExceptions) {
  run([&] {
    int value = 3;
    int& same = on_thread_stack([&]() -> int& { return value; });
    EXPECT_EQ(&same, &value);
    on_thread_stack([&] { ++value; });
    EXPECT_EQ(value, 4);
    EXPECT_EQ(*on_thread_stack([] { return std::make_unique<int>(6); }), 6);
    EXPECT_THROW(on_thread_stack([] { throw std::runtime_error("there"); }), std::runtime_error);
    EXPECT_THROW(on_thread_stack([] { this_fiber::sleep_for(1h); }), usage_error) << "it may not wait";
    EXPECT_EQ(on_thread_stack([] { return on_thread_stack([] { return 2; }); }), 2);
    EXPECT_EQ(on_thread_stack([&] { return spawn([] { return 8; }); }).get(), 8);
  });
}

TEST_P(OnThreadStack, KeepsTheErrorOfACallAndKnowsTheStackOfTheFiber) {
  run([&] {
    errno = 0;
    EXPECT_EQ(on_thread_stack([] { return ::close(-1); }), -1);
    EXPECT_EQ(errno, EBADF);
    const auto stack = on_thread_stack([] { return this_fiber::stack(); });
    EXPECT_GT(stack.used, 0U);
    EXPECT_LE(stack.used, stack.size);
  });
}

TEST_P(OnThreadStack, InAContextAndPinned) {
  run([&] {
    concurrent_context context;
    std::vector<join_handle<>> all;
    for (int i = 0; i < 4; ++i)
      all.push_back(context.spawn([] {
        for (int round = 0; round < 20; ++round) {
          const no_migration_scope pinned;
          on_thread_stack([] { EXPECT_FALSE(stack_around(__builtin_frame_address(0))); });
          this_fiber::yield();
        }
      }));
    for (auto& each : all) each.get();
  });
  EXPECT_EQ(on_thread_stack([] { return 5; }), 5) << "on a plain thread";
}

}  // namespace
