// The scheduler's duty to fibers that share its workers: each runnable fiber runs, however the others behave.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/no_yield.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/shared_mutex.hpp>
#include <ulexite/sync/synchronized.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/timed_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <shared_mutex>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Scheduling : public WorkersTest {};
ULEXITE_TEST_WORKERS(Scheduling);

TEST_P(Scheduling, YieldLetsOthersRun) {
  run([] {
    std::atomic<bool> ran{false};
    auto other = spawn([&] { ran = true; });
    wait_until([&] { return ran.load(); });
    other.join();
  });
}

TEST_P(Scheduling, YieldAloneReturns) {
  run([] {
    for (int i = 0; i < 1000; ++i) this_fiber::yield();
  });
  this_fiber::yield();
}

// Sends that do not have to wait make their fiber yield after a thousand of them.
template <class Scope>
void expect_that_others_run_only_after(Scope make_scope) {
  bool ran = false;
  auto other = spawn([&] { ran = true; });
  channel<int> values(unbounded);
  const auto send_many = [&] {
    for (int i = 0; i < 1000; ++i) values.send(i);
  };
  {
    const auto& scope [[maybe_unused]] = make_scope();
    send_many();
    EXPECT_FALSE(ran);
  }
  send_many();
  EXPECT_TRUE(ran);
  other.join();
}

TEST_F(RuntimeTest, AHolderOfALockIsNotMadeToYield) {
  make(1).run([] {
    mutex guarded;
    expect_that_others_run_only_after([&] { return std::unique_lock(guarded); });
  });
}

TEST_F(RuntimeTest, ANoYieldScopeIsNotMadeToYield) {
  make(1).run([] { expect_that_others_run_only_after([] { return no_yield_scope(); }); });
}

TEST_F(RuntimeTest, ATrySendDoesNotYieldButTheNextSendDoes) {
  make(1).run([] {
    bool ran = false;
    auto other = spawn([&] { ran = true; });
    channel<int> many(unbounded), full;
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(many.try_send(i), channel_status::ok);
      ASSERT_EQ(full.try_send(i), channel_status::would_block);
    }
    EXPECT_FALSE(ran);
    for (int i = 0; i < 200; ++i) many.send(i);
    EXPECT_TRUE(ran);
    other.join();
  });
}

// With one worker: one after the other. None gets a second turn before each has had its first.
TEST_F(RuntimeTest, YieldingFibersTakeTurns) {
  make(1).run([] {
    constexpr int count = 10;
    std::vector<int> order;
    task_group all;
    for (int i = 0; i < count; ++i)
      all.spawn([&order, i] {
        for (int k = 0; k < 5; ++k) {
          order.push_back(i);
          this_fiber::yield();
        }
      });
    all.wait();
    std::vector<int> turns(count);
    for (const int who : order) {
      ++turns[static_cast<std::size_t>(who)];
      const auto [least, most] = std::minmax_element(turns.begin(), turns.end());
      EXPECT_LE(*most - *least, 2);
    }
  });
}

TEST_F(RuntimeTest, FibersOfOneSpawnerStartInOrder) {
  make(1).run([] {
    std::vector<int> order;
    task_group all;
    for (int i = 0; i < 100; ++i) all.spawn([&order, i] { order.push_back(i); });
    all.wait();
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_EQ(order.size(), 100u);
  });
}

// Two fibers that wake each other without end, on the fastest way there is.
class ping_pong {
 public:
  ping_pong() {
    group_.spawn([this] {
      while (there_.receive()) {
        if (stop_) return back_.close(), void();
        back_.send(1);
      }
    });
    group_.spawn([this] {
      try {
        for (;;) {
          there_.send(1);
          if (!back_.receive()) return;
          ++rounds_;
        }
      } catch (const channel_closed&) {
      }
    });
  }
  ~ping_pong() {
    stop_ = true;
    group_.wait();
  }
  [[nodiscard]] long rounds() const { return rounds_; }

 private:
  channel<int> there_, back_;
  std::atomic<bool> stop_{false};
  std::atomic<long> rounds_{0};
  task_group group_;
};

TEST_P(Scheduling, APingPongPairLeavesOthersTheirTurn) {
  run([] {
    const ping_pong pair;
    const long start = pair.rounds();
    for (int i = 0; i < 100; ++i) {
      this_fiber::yield();
      spawn([] {}).join();
    }
    wait_until([&] { return pair.rounds() > start; });
  });
}

// It yields directly after each wake, so a wake of other workers would be useless. While the pair's worker is stopped
// by the system, the main fiber wakes others, so one window of several must be free of that.
TEST_P(Scheduling, APingPongPairSeldomWakesOthers) {
  if (detail::migrating) GTEST_SKIP() << "every fiber is to change its worker";
  runtime& rt = this->rt();
  rt.run([&] {
    const ping_pong pair;
    const long rounds = times(20'000);
    bool seldom = false;
    for (int window = 0; window < 20 && !seldom; ++window) {
      const long first = pair.rounds();
      const auto before = rt.metrics().wakes;
      wait_until([&] { return pair.rounds() >= first + rounds; });
      seldom = rt.metrics().wakes - before < static_cast<std::uint64_t>(pair.rounds() - first) / 10;
    }
    EXPECT_TRUE(seldom);
  });
}

TEST_P(Scheduling, APingPongPairLeavesJobsTheirTurn) {
  run([] {
    struct signal : job {
      wait_group done{1};
    };
    const ping_pong pair;
    for (int i = 0; i < 20; ++i) {
      signal one;
      one.run = [](job* self) noexcept { static_cast<signal*>(self)->done.done(); };
      schedule(one);
      one.done.wait();
    }
  });
}

TEST_P(Scheduling, APingPongPairLeavesTimersTheirTurn) {
  run([] {
    const ping_pong pair;
    for (int i = 0; i < 5; ++i) this_fiber::sleep_for(1ms);
  });
}

TEST_P(Scheduling, APingPongPairLeavesOutsideWorkItsTurn) {
  std::atomic<bool> stop{false};
  runtime& shared = rt();
  auto inside = shared.spawn([&] {
    const ping_pong pair;
    wait_until([&] { return stop.load(); });
  });
  for (int i = 0; i < 100; ++i) shared.spawn([] {}).join();
  stop = true;
  inside.join();
}

TEST_P(Scheduling, TimersFireWhileFibersYieldAllTheTime) {
  run([] {
    std::atomic<bool> stop{false};
    task_group yielders;
    for (int i = 0; i < 16; ++i) yielders.spawn([&] { wait_until([&] { return stop.load(); }); });
    for (int i = 0; i < 20; ++i) this_fiber::sleep_for(500us);
    stop = true;
    yielders.wait();
  });
}

TEST_P(Scheduling, OutsideWorkIsServedWhileFibersYieldAllTheTime) {
  std::atomic<bool> stop{false};
  std::vector<join_handle<>> yielders;
  for (int i = 0; i < 16; ++i) yielders.push_back(rt().spawn([&] { wait_until([&] { return stop.load(); }); }));
  for (int i = 0; i < 50; ++i) rt().spawn([] {}).join();
  stop = true;
  for (auto& each : yielders) each.join();
}

// Another fiber must end the loop.
template <class Operation>
void expect_that_a_loop_ends(Operation operation) {
  bool ended = false;
  auto other = spawn([&] { ended = true; });
  for (int i = 0; i < 10'000 && !ended; ++i) operation();
  EXPECT_TRUE(ended);
  other.join();
}

TEST_F(RuntimeTest, ALoopOverAFreeLockLetsOthersRun) {
  make(1).run([] {
    mutex plain;
    recursive_mutex recursive;
    timed_mutex timed;
    shared_mutex shared;
    synchronized<int> number(0);
    expect_that_a_loop_ends([&] { const std::lock_guard lock(plain); });
    expect_that_a_loop_ends([&] { const std::scoped_lock twice(recursive, recursive); });
    expect_that_a_loop_ends([&] {
      ASSERT_TRUE(timed.try_lock_for(1h));
      timed.unlock();
    });
    expect_that_a_loop_ends([&] { const std::lock_guard lock(shared); });
    expect_that_a_loop_ends([&] { const std::shared_lock lock(shared); });
    expect_that_a_loop_ends([&] { number.with_lock([](int& value) { ++value; }); });
    mutex outer;
    expect_that_a_loop_ends([&] {
      const std::lock_guard first(outer);
      const std::lock_guard second(plain);
    });
  });
}

TEST_F(RuntimeTest, ALoopOverTheJoinOfAnEndedFiberLetsOthersRun) {
  make(1).run([] {
    auto ended = spawn([] {});
    ended.join();
    expect_that_a_loop_ends([&] { ended.join(); });
  });
}

// Neither side of it ever waits, and yet it lets go of the worker.
TEST_P(Scheduling, AChannelLoopThatNeverWaitsLetsOthersRun) {
  run([] {
    std::atomic<bool> stop{false};
    task_group hogs;
    for (std::size_t i = 0; i < 8; ++i)
      hogs.spawn([&] {
        channel<int> mine(4);
        int value = 1;
        while (!stop) {
          mine.send(value);
          EXPECT_EQ(mine.try_receive(value), channel_status::ok);
        }
      });
    for (int i = 0; i < 10; ++i) {
      spawn([] {}).join();
      this_fiber::sleep_for(100us);
    }
    stop = true;
    hogs.wait();
  });
}

TEST_P(Scheduling, SleepIsNeverEarly) {
  run([] {
    task_group all;
    for (int i = 0; i < 50; ++i)
      all.spawn([i] {
        const auto time = std::chrono::microseconds(i * 100);
        const auto start = ulexite::steady_clock::now();
        this_fiber::sleep_for(time);
        EXPECT_GE(ulexite::steady_clock::now() - start, time);
        const auto until = ulexite::steady_clock::now() + time;
        this_fiber::sleep_until(until);
        EXPECT_GE(ulexite::steady_clock::now(), until);
      });
    all.wait();
    this_fiber::sleep_for(-1s);
    this_fiber::sleep_until(ulexite::steady_clock::time_point{});
  });
  const auto start = ulexite::steady_clock::now();
  this_fiber::sleep_for(2ms);
  EXPECT_GE(ulexite::steady_clock::now() - start, 2ms) << "on a plain thread";
}

// As many events as a worker keeps from one turn of the loop: the test checks the order of these.
TEST_P(Scheduling, SleepersWakeInTheOrderOfTheirTimes) {
  if (GetParam() != 1) GTEST_SKIP() << "one worker keeps the order of what it was given";
  run([] {
    bool in_time = false;
    for (auto lead = 10ms; !in_time; lead *= 2) {
      std::vector<int> order;
      task_group all;
      int begun = 0;
      const auto start = ulexite::steady_clock::now() + lead;
      for (int i = 7; i >= 0; --i)
        all.spawn([&, i] {
          ++begun;
          this_fiber::sleep_until(start + std::chrono::milliseconds(i));
          order.push_back(i);
        });
      wait_until([&] { return begun == 8; });
      in_time = ulexite::steady_clock::now() < start;  // all of them sleep; else it was too slow to tell anything
      all.wait();
      if (in_time) EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    }
  });
}

TEST_P(Scheduling, MetricsCountWhatHappens) {
  runtime& rt = this->rt();
  rt.run([&] {
    task_group all;
    for (int i = 0; i < fibers(1000); ++i) all.spawn([] { this_fiber::yield(); });
    all.wait();
    wait_until([&] {  // a sleep that begins when its time is over already brings no event
      this_fiber::sleep_for(1ms);
      return rt.metrics().events > 0;
    });
  });
  wait_until([&] { return rt.metrics().fibers_live == 0; });  // the group lets go before a fiber's end is counted
  const runtime_metrics m = rt.metrics();
  const auto count = static_cast<std::uint64_t>(fibers(1000)) + 1;
  EXPECT_EQ(m.fibers_spawned, count);
  EXPECT_EQ(m.fibers_ended, count);
  EXPECT_EQ(m.fibers_live, 0u);
  EXPECT_GE(m.dispatches, count);
  EXPECT_LE(m.starts_in_place, m.dispatches);
  EXPECT_GE(m.workers, 1u);
  EXPECT_LE(m.workers, GetParam());
  EXPECT_LE(m.workers_sleeping, m.workers);
  EXPECT_GE(m.polls, 1u);
  EXPECT_GE(m.events, 1u);
  EXPECT_EQ(m.queued_outside, 0u);
  EXPECT_EQ(m.thread_starts_refused, 0u);
  EXPECT_EQ(m.stacks_refused, 0u);
  if (GetParam() == 1) EXPECT_EQ(m.steals, 0u);
}

}  // namespace
