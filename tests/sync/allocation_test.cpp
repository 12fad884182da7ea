// Steps that must not allocate, once they are warm: all steps of each message, lock, wait and switch.

#include "allocation_fixture.hpp"

#include <ulexite/interop/ulexite.h>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/barrier.hpp>
#include <ulexite/sync/call_once.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/future.hpp>
#include <ulexite/sync/latch.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/parallel_for.hpp>
#include <ulexite/sync/parallel_invoke.hpp>
#include <ulexite/sync/parallel_reduce.hpp>
#include <ulexite/sync/parallel_sort.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/shared_mutex.hpp>
#include <ulexite/sync/synchronized.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/timed_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <stop_token>
#include <vector>

using ulexite::test::allocations;

#if !ULEXITE_ASAN && !ULEXITE_TSAN
void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] static void release(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
#endif

namespace {

using namespace ulexite;
using namespace ulexite::test;

INSTANTIATE_TEST_SUITE_P(Workers, NoAllocation, testing::Values(1, 2, 4, 8), testing::PrintToStringParamName());

TEST_P(NoAllocation, InARendezvous) {
  channel<int> values;
  expect_none([&](int i) { values.send(i); }, [&](int) { values.receive(); });
}

TEST_P(NoAllocation, InABufferedChannel) {
  channel<int> values(16);
  fill_once(values);
  expect_none([&](int i) { values.send(i); }, [&](int) { values.receive(); });
}

TEST_P(NoAllocation, InTimedOperations) {
  channel<int> values;
  const auto receive = [&](int) {
    int value = 0;
    (void)values.receive_for(value, 1us);
  };
  expect_none(receive, receive);
}

TEST_P(NoAllocation, InYieldAndSleep) {
  expect_none([](int) { this_fiber::yield(); },
              [](int i) {
                if (i % 20 == 0) this_fiber::sleep_for(1us);
              });
}

// The room for a fiber's timer is made with the fiber: a wait could not tell that there is no memory for it.
TEST_P(NoAllocation, InTimersOfManyFibersAtOnce) {
  run([] {
    start_all_workers();
    constexpr int many = 1000;
    event go;
    std::atomic<int> ready{0};
    task_group all;
    for (int i = 0; i < many; ++i)
      all.spawn([&] {
        ++ready;
        go.wait();
        this_fiber::sleep_for(1ms);
      });
    wait_until([&] { return ready == many; });
    const long before = allocations;
    go.set();
    all.wait();
    EXPECT_EQ(allocations - before, 0);
  });
}

TEST_P(NoAllocation, InAContendedMutex) {
  mutex guard;
  const auto lock = [&](int i) {
    const std::lock_guard held(guard);
    if (i % 4 == 0) this_fiber::yield();
  };
  expect_none(lock, lock);
}

TEST_P(NoAllocation, InAConditionVariable) {
  mutex guard;
  condition_variable condition;
  bool left_turn = true;
  const auto take_turn = [&](bool mine) {
    std::unique_lock lock(guard);
    condition.wait(lock, [&] { return left_turn == mine; });
    left_turn = !mine;
    condition.notify_one();
  };
  expect_none([&](int) { take_turn(true); }, [&](int) { take_turn(false); });
}

TEST_P(NoAllocation, InForks) {
  const auto fork = [](int i) {
    int values[300];
    parallel_for(0, 300, [&](int j) { values[j] = (j * 7 + i) % 300; });
    parallel_invoke([&] { parallel_sort(values, values + 150); }, [&] { parallel_sort(values + 150, values + 300); },
                    [&] {
                      if (i % 4 == 0) this_fiber::yield();
                    });
    EXPECT_EQ(parallel_reduce(0, 300, 0, [&](int j) { return values[j]; }, std::plus<>{}), 299 * 300 / 2);
  };
  expect_none(fork, fork);
}

TEST_P(NoAllocation, InLocksOfOnesOwn) {
  const auto lock = [](int i) {
    mutex plain;
    timed_mutex timed;
    recursive_mutex recursive;
    const std::scoped_lock held(plain, timed, recursive);
    const std::scoped_lock again(recursive);
    if (i % 4 == 0) this_fiber::yield();
  };
  expect_none(lock, lock);
}

TEST_P(NoAllocation, InContendedLocksWithAndWithoutATimeOut) {
  timed_mutex timed;
  recursive_mutex recursive;
  const auto lock = [&](int i) {
    if (const std::unique_lock held(timed, std::chrono::microseconds(i % 8)); held.owns_lock() && i % 4 == 0)
      this_fiber::yield();
    const std::lock_guard held(recursive);
    if (i % 4 == 0) this_fiber::yield();
  };
  expect_none(lock, lock);
}

// Notified under the mutex and without it; most of the waits end by their time.
TEST_P(NoAllocation, InNotificationsAndTimedWaits) {
  mutex guard;
  condition_variable condition;
  timed_mutex timed;
  condition_variable_any any;
  std::stop_source source;
  const auto wait = [&](int i) {
    {
      std::unique_lock lock(guard);
      condition.wait_for(lock, std::chrono::microseconds(i % 4));
      condition.notify_one();
    }
    condition.notify_all();
    std::unique_lock lock(timed);
    any.wait_for(lock, std::chrono::microseconds(i % 4));
    any.notify_one();
    (void)any.wait_for(lock, source.get_token(), 1us, [once = false]() mutable { return std::exchange(once, true); });
    any.notify_all();
  };
  expect_none(wait, wait);
}

TEST_P(NoAllocation, InAWaitGroup) {
  channel<wait_group*> groups;
  expect_none(
      [&](int) {
        wait_group group(1);
        groups.send(&group);
        group.wait();
      },
      [&](int) { (*groups.receive())->done(); });
}

TEST_P(NoAllocation, InSpawnsOfAGroup) {
  const auto spawn_some = [&](int) {
    task_group group;
    group.spawn([] {});
    group.spawn_batch(100, [](std::size_t) {});
    group.wait();
  };
  expect_none(spawn_some, spawn_some);
}

TEST_P(NoAllocation, InASemaphore) {
  binary_semaphore left_turn(1), right_turn(0), none(0);
  expect_none(
      [&](int i) {
        if (i % 16 == 0) EXPECT_FALSE(none.try_acquire_for(1us));
        left_turn.acquire();
        right_turn.release();
      },
      [&](int) {
        right_turn.acquire();
        left_turn.release();
      });
}

TEST_P(NoAllocation, InAnEvent) {
  ulexite::event left_turn(true), right_turn;
  const auto take_turn = [](ulexite::event& mine, ulexite::event& other) {
    mine.wait();
    mine.reset();
    other.set();
  };
  expect_none([&](int) { take_turn(left_turn, right_turn); }, [&](int) { take_turn(right_turn, left_turn); });
}

TEST_P(NoAllocation, InALatch) {
  channel<latch*> latches;
  expect_none(
      [&](int) {
        latch gate(2);
        latches.send(&gate);
        gate.arrive_and_wait();
      },
      [&](int) { (*latches.receive())->count_down(); });
}

TEST_P(NoAllocation, InABarrier) {
  barrier meeting(2, []() noexcept { this_fiber::yield(); });
  expect_none([&](int) { meeting.arrive_and_wait(); }, [&](int) { meeting.arrive_and_wait(); });
}

TEST_P(NoAllocation, InASharedMutex) {
  ulexite::shared_mutex guard;
  const auto lock = [&](int i) {
    if (i % 3 == 0) {
      const std::unique_lock held(guard);
      this_fiber::yield();
    } else if (guard.try_lock_shared_for(1us)) {
      this_fiber::yield();
      guard.unlock_shared();
    }
  };
  expect_none(lock, lock);
}

TEST_P(NoAllocation, InCallOnceAndSynchronized) {
  synchronized<int> value(0);
  channel<once_flag*> flags;
  expect_none(
      [&](int) {
        once_flag flag;
        flags.send(&flag);
        call_once(flag, [&] { value.with_lock([](int& v) { ++v; }); });
        flags.send(nullptr);
      },
      [&](int) {
        call_once(**flags.receive(), [&] { value.exchange(0); });
        flags.receive();
      });
}

// What it needs is made by the spawn, which can report that there is no memory.
TEST_P(NoAllocation, InAFiberOfTheCInterface) {
  run([] {
    start_all_workers();
    int data = 0;
    ulx_spawn_options options = ULX_INIT(ulx_spawn_options);
    options.data = &data;
    for (int i = 0; i < 100; ++i) {
      ulx_fiber* const made = ulx_spawn(+[](void*) -> std::intptr_t { return 7; }, nullptr, &options);
      ASSERT_EQ(ulx_go(+[](void*) {}, nullptr, &options), 0);
      const long before = allocations;
      ASSERT_EQ(ulx_join(made, ULX_FOREVER, nullptr), 0);
      this_fiber::yield();
      if (i > 50) EXPECT_EQ(allocations - before, 0);
      ulx_fiber_release(made);
    }
  });
}

// The promises are made before: that is the one allocation there is.
TEST_P(NoAllocation, InSettingAndTakingAFuture) {
  std::vector<promise<int>> promises(4000);
  std::vector<future<int>> futures;
  for (auto& each : promises) futures.push_back(each.get_future());
  std::size_t set = 0, taken = 0;
  expect_none([&](int i) { promises[set++].set_value(i); }, [&](int i) { EXPECT_EQ(futures[taken++].get(), i); });
}

TEST_P(NoAllocation, InJobs) {
  struct signal : job {
    wait_group* group = nullptr;
  };
  const auto one = [](int) {
    wait_group group(1);
    signal notice;
    notice.group = &group;
    notice.run = [](job* self) noexcept { static_cast<signal*>(self)->group->done(); };
    schedule(notice);
    group.wait();
  };
  expect_none(one, one);
}

TEST_P(NoAllocation, InASelect) {
  channel<int> direct, buffered(2), never;
  fill_once(buffered);
  std::stop_source stop;
  std::atomic<bool> ended{false};
  std::array<join_handle<>, 2> unended;
  for (auto& each : unended)
    each = rt().spawn([&] {
      while (!ended) this_fiber::sleep_for(1ms);
    });
  expect_none(
      [&](int i) {
        select(on_send(direct, i), on_send(buffered, i), on_receive(never, [](auto) {}), after(1h),
               on_stop(stop.get_token()), on_join(unended[0]));
      },
      [&](int i) {
        const auto ignore = [](std::optional<int>) {};
        if (select(on_receive(direct, ignore), on_receive(never, ignore), otherwise()) == 0) return;
        select(in_order, on_receive(direct, ignore), on_receive(buffered, ignore), on_send(never, i), after(1h),
               on_stop(stop.get_token()), on_join(unended[1]));
      });
  ended = true;
  for (auto& each : unended) each.join();
}

TEST_P(NoAllocation, InASelectThatTimesOut) {
  channel<int> never;
  const auto wait = [&](int i) { select(on_receive(never, [](auto) {}), when(i % 2 == 0, after(1us)), after(2us)); };
  expect_none(wait, wait);
}

TEST_P(NoAllocation, InASelector) {
  channel<int> direct, buffered(2), never;
  fill_once(buffered);
  int value = 1;
  selector<int> sends, receives(in_order);
  sends.add_send(direct, value);
  sends.add_receive(never);
  sends.add_send(buffered, value);
  receives.add_receive(buffered);
  receives.add_receive(direct);
  receives.add_receive(never);
  expect_none([&](int i) { i % 2 == 0 ? sends.wait() : *sends.wait_for(1h); },
              [&](int) {
                receives.disable(2);
                receives.enable(2);
                receives.wait();
              });
}

}  // namespace
