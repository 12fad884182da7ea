// What must not allocate, once it is warm: everything that happens for each message, lock, wait and switch.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <cstdlib>
#include <mutex>
#include <new>
#include <stop_token>

namespace {
std::atomic<long> allocations{0};
}

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

class NoAllocation : public WorkersTest {
 protected:
  // Each keeps a worker until all have one: what starts or is used first allocates.
  static void start_all_workers() {
    std::atomic<std::size_t> waiting{0};
    wait_group all;
    for (std::size_t i = 0; i < GetParam(); ++i)
      all.spawn([&] {
        ++waiting;
        EXPECT_TRUE(hog_until([&] { return waiting == GetParam(); }));
        this_fiber::sleep_for(1us);  // and a worker's first timer
      });
    all.wait();
  }
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the sanitizer brings its own operator new";
  }
  // Two fibers do left(i) and right(i), in step; after some warm-up, all without an allocation.
  template <class L, class R>
  void expect_none(L left, R right) {
    run([&] {
      start_all_workers();
      std::atomic<int> ready{0};
      std::atomic<bool> measure{false};
      wait_group all;
      const auto both = [&](auto& side) {
        for (int i = 0; i < 2000; ++i) side(i);
        ++ready;
        wait_until([&] { return measure.load(); });
        for (int i = 0; i < 2000; ++i) side(i);
      };
      all.spawn([&] { both(left); });
      all.spawn([&] { both(right); });
      wait_until([&] { return ready == 2; });
      const long before = allocations;
      measure = true;
      all.wait();
      EXPECT_EQ(allocations - before, 0);
    });
  }
};
ULEXITE_TEST_WORKERS(NoAllocation);

TEST_P(NoAllocation, InARendezvous) {
  channel<int> values;
  expect_none([&](int i) { values.send(i); }, [&](int) { values.receive(); });
}

TEST_P(NoAllocation, InABufferedChannel) {
  channel<int> values(16);
  expect_none([&](int i) { values.send(i); }, [&](int) { values.receive(); });
}

TEST_P(NoAllocation, InTimedOperations) {
  channel<int> values;
  const auto receive = [&](int) {
    int value = 0;
    values.receive_for(value, 1us);
  };
  expect_none(receive, receive);
}

TEST_P(NoAllocation, InYieldAndSleep) {
  expect_none([](int) { this_fiber::yield(); },
              [](int i) {
                if (i % 20 == 0) this_fiber::sleep_for(1us);
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
