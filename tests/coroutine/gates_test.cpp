// What opens, counts, ticks and changes: tests of tests/sync/event_test.cpp, gates_test.cpp, wait_group_test.cpp,
// barrier_test.cpp, semaphore_test.cpp, ticker_test.cpp, watch_test.cpp, held_locks_test.cpp for coroutines.

#include "ways.hpp"

#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoGates : public WaysTest {};
ULEXITE_TEST_WAYS(CoGates);

TEST_P(CoGates, WakeCoroutinesFibersAndThreads) {
  const auto wakes_all = [&](auto& gate, auto open) {
    std::atomic<int> passed{0};
    const auto wait = [&]() -> task<> {
      co_await co_wait(gate);
      ++passed;
    };
    std::vector<join_handle<>> all;
    for (int i = 0; i < 6; ++i) all.push_back(start_until_it_waits(wait));
    std::thread outside([&] { await(wait()); });
    EXPECT_EQ(passed, 0);
    open();
    for (auto& each : all) each.get();
    outside.join();
    EXPECT_EQ(passed, 7);
  };
  ulexite::event one;
  wakes_all(one, [&] { one.set(); });
  latch two(2);
  wakes_all(two, [&] { two.count_down(), two.count_down(); });
  wait_group work(2);
  wakes_all(work, [&] { work.done(), work.done(); });
}

// The set has ended their waits, even if they run only after the reset.
TEST_P(CoGates, ThoseWhoWaitedForAnEventPassInSpiteOfAReset) {
  ulexite::event gate;
  for (int round = 0; round < times(20); ++round) {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 4; ++i) all.push_back(start_until_it_waits([&]() -> task<> { co_await co_wait(gate); }));
    gate.set();
    gate.reset();
    for (auto& each : all) each.get();
    EXPECT_FALSE(gate.is_set());
  }
}

// A set of what is set already counts too: the consumer resets, then looks; what it does not see is followed by a set.
TEST_P(CoGates, NoSetOfAnEventIsLostToAReset) {
  ulexite::event news;
  std::atomic<long> produced{0};
  const long total = times(5000);
  auto producer = start([&]() -> task<> {
    for (long i = 0; i < total; ++i) {
      produced.fetch_add(1, std::memory_order_relaxed);
      news.set();
      if (i % 64 == 0) co_await co_yield_now();
    }
  });
  finish([&]() -> task<> {
    for (long seen = 0; seen < total; seen = produced.load(std::memory_order_relaxed)) {
      co_await co_wait(news);
      news.reset();
    }
  });
  producer.get();
}

TEST_P(CoGates, TimeOutsOfAnEventRaceWithSets) {
  ulexite::event gate;
  std::atomic<int> left{8};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(start([&, i]() -> task<> {
      for (int k = 0; k < times(100); ++k)
        (void)co_await co_wait_for(gate, std::chrono::microseconds((i * 7 + k) % 50));
      --left;
    }));
  while (left > 0) {
    gate.set();
    gate.reset();
    std::this_thread::yield();
  }
  for (auto& each : all) each.get();
  auto waiter = start_until_it_waits([&]() -> task<> { co_await co_wait(gate); });
  gate.set();
  waiter.get();
}

// It may be destroyed as soon as the last wait has returned, and used again as long as it lives.
TEST_P(CoGates, AWaitGroupWaitsForAllItCounts) {
  finish([]() -> task<> {
    auto work = std::make_unique<wait_group>();
    for (int i = 0; i < times(500); ++i) {
      if (i % 3 == 0) work = std::make_unique<wait_group>();
      std::atomic<int> done{0};
      work->add(4);
      for (int k = 0; k < 4; ++k)
        spawn([&done, k, work = work.get()]() -> task<> {
          if (k % 2) co_await co_yield_now();
          ++done;
          work->done();
        }).detach();
      if (i % 4 == 0) {
        while (!co_await co_wait_for(*work, 1us)) {
        }
      } else {
        co_await co_wait(*work);
      }
      EXPECT_EQ(done, 4);
      EXPECT_EQ(work->count(), 0u);
    }
  });
}

TEST_P(CoGates, AStoppedArriveAndWaitHasArrived) {
  barrier<> meet(2);
  latch two(2);
  for (int i = 0; i < times(20); ++i) {
    auto stopped = start_until_it_waits([&]() -> task<> { co_await co_arrive_and_wait(meet); });
    stopped.request_stop();
    EXPECT_THROW(stopped.get(), operation_cancelled);
    finish([&]() -> task<> { co_await co_arrive_and_wait(meet); });
  }
  auto stopped = start_until_it_waits([&]() -> task<> { co_await co_arrive_and_wait(two); });
  stopped.request_stop();
  EXPECT_THROW(stopped.get(), operation_cancelled);
  finish([&]() -> task<> { co_await co_arrive_and_wait(two); });
}

TEST_P(CoGates, SemaphoresAndSharedMutexesServeInTheOrderOfArrival) {
  const auto serves_in_order = [&](auto begin, auto let) {
    std::vector<int> order;
    std::vector<join_handle<>> all;
    for (int i = 0; i < 6; ++i)
      all.push_back(start_until_it_waits([&, i] { return begin([&, i] { order.push_back(i); }); }));
    let();
    for (auto& each : all) each.get();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5}));
  };
  counting_semaphore<> permits(0);
  serves_in_order(
      [&](auto then) -> task<> {
        co_await co_acquire(permits);
        then();
        permits.release();
      },
      [&] { permits.release(); });
  shared_mutex guard;
  guard.lock();
  serves_in_order(
      [&](auto then) -> task<> {
        const auto lock = co_await co_lock(guard);
        then();
      },
      [&] { guard.unlock(); });
}

TEST_P(CoGates, ATickerTicksOncePerPeriodAndNeverEarly) {
  finish([]() -> task<> {
    const auto begin = ulexite::steady_clock::now();
    ticker every(1ms);
    auto last = begin;
    for (int i = 1; i <= 5; ++i) {
      const auto tick = co_await co_receive(every.channel());
      EXPECT_TRUE(tick);
      if (!tick) co_return;
      EXPECT_GE(*tick - begin, i * 1ms);
      EXPECT_GT(*tick, last);
      last = *tick;
    }
  });
}

TEST_P(CoGates, TheEndOfATickerEndsItsReceiver) {
  finish([]() -> task<> {
    ticker every(1h);
    auto stopper = spawn([&]() -> task<> {
      co_await co_yield_now();
      every.stop();
    });
    EXPECT_EQ(co_await co_receive(every.channel()), std::nullopt);
    co_await co_join(stopper);
  });
}

// However many values are skipped, the last one is always seen.
TEST_P(CoGates, TheLastValueOfAWatchIsSeen) {
  for (int round = 0; round < times(20); ++round) {
    watch<int> level(0);
    auto seen = start([mine = level.subscribe()]() mutable -> task<int> {
      int last = 0;
      while (const auto value = co_await co_receive(mine)) {
        EXPECT_GT(*value, last);
        last = *value;
      }
      co_return last;
    });
    std::thread setting([&] {
      for (int i = 1; i <= 100; ++i) level.set(i);
      level.close();
    });
    EXPECT_EQ(seen.get(), 100);
    setting.join();
  }
}

TEST_P(CoGates, AFiberThatEndsWithALockHasFailed) {
  mutex guard;
  shared_mutex alone, together;
  EXPECT_THROW(finish([&]() -> task<> { (co_await co_lock(guard)).release(); }), usage_error);
  EXPECT_THROW(finish([&]() -> task<> { (co_await co_lock(alone)).release(); }), usage_error);
  EXPECT_THROW(finish([&]() -> task<> { (co_await co_lock_shared(together)).release(); }), usage_error);
  finish([&]() -> task<> {
    mutex own;
    auto lock = co_await co_lock(own);
    EXPECT_EQ(detail::this_agent().held_locks, 1);
    co_await co_sleep_for(1us);
    EXPECT_EQ(detail::this_agent().held_locks, 1);
    lock.unlock();
    EXPECT_EQ(detail::this_agent().held_locks, 0);
  });
}

}  // namespace
