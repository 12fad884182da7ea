// Calls that block run beside the workers.

#include "support/waiting.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/task_group.hpp>

#include <signal.h>

#include <array>
#include <atomic>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Blocking : public WorkersTest {};
ULEXITE_TEST_WORKERS(Blocking);

// Waits, on a fiber, for an effect of a call on another thread.
void await(std::binary_semaphore& begun) {
  while (!begun.try_acquire()) this_fiber::yield();
}

TEST_P(Blocking, GivesValuesReferencesAndNothing) {
  run([] {
    EXPECT_EQ(blocking([](int a, int b) { return a + b; }, 2, 3), 5);
    int x = 1;
    int& same = blocking([&]() -> int& { return x; });
    EXPECT_EQ(&same, &x);
    blocking([&] { x = 7; });
    EXPECT_EQ(x, 7);
    auto moved = blocking([p = std::make_unique<int>(9)]() mutable { return std::move(p); });
    EXPECT_EQ(*moved, 9);
    const auto large = blocking([] { return std::array<int, 1000>{1, 2, 3}; });
    EXPECT_EQ(large[2], 3);
  });
}

TEST_P(Blocking, NothingIsCopied) {
  run([] {
    struct unmovable {
      unmovable() = default;
      unmovable(const unmovable&) = delete;
      int calls = 0;
      void operator()(unmovable& self) {
        EXPECT_EQ(this, &self);
        ++calls;
      }
    } object;
    blocking(object, object);
    EXPECT_EQ(object.calls, 1);
  });
}

TEST_P(Blocking, ExceptionsComeBack) {
  run([] {
    try {
      blocking([]() -> int { throw std::runtime_error("from there"); });
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "from there");
    }
  });
}

TEST_P(Blocking, RunsOnAPlainThread) {
  run([] {
    const auto here = std::this_thread::get_id();
    EXPECT_FALSE(blocking([] { return in_fiber(); }));
    EXPECT_NE(blocking([] { return std::this_thread::get_id(); }), here);
  });
}

// Each call needs the next one to have begun: on workers they would never end.
TEST_P(Blocking, CallsRunAtTheSameTimeAndWorkersGoOn) {
  run([] {
    constexpr int calls = 20;
    std::vector<std::unique_ptr<std::binary_semaphore>> begun;
    for (int i = 0; i < calls; ++i) begun.push_back(std::make_unique<std::binary_semaphore>(0));
    task_group all;
    for (int i = 0; i < calls; ++i)
      all.spawn([&, i] {
        blocking([&, i] {
          begun[i]->release();
          if (i + 1 < calls) begun[i + 1]->acquire();
        });
      });
    all.wait();
  });
}

TEST_P(Blocking, ChannelsReachInto) {
  run([] {
    channel<int> in, out;
    auto echo = spawn([&] {
      blocking([&] {
        for (int x : in) out.send(x + 1);
      });
    });
    for (int i = 0; i < 100; ++i) {
      in.send(i);
      EXPECT_EQ(out.receive(), i + 1);
    }
    in.close();
    echo.join();
  });
}

TEST_P(Blocking, ThePoolIsBoundedAndInOrder) {
  runtime& rt = make({.threads = GetParam(), .blocking_threads = 2});
  rt.run([&] {
    std::counting_semaphore<> gate(0);
    std::atomic<int> inside{0}, most{0};
    task_group all;
    for (int i = 0; i < 10; ++i)
      all.spawn([&] {
        blocking([&] {
          const int now = ++inside;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          gate.acquire();
          --inside;
        });
      });
    while (rt.metrics().blocking_queued < 8 || inside < 2) this_fiber::yield();
    EXPECT_EQ(rt.metrics().blocking_threads, 2u);
    gate.release(10);
    all.wait();
    EXPECT_EQ(most, 2);
    EXPECT_EQ(rt.metrics().blocking_queued, 0u);
  });
}

TEST_P(Blocking, IdleThreadsAreUsedAgainAndEnd) {
  runtime& rt = make({.threads = GetParam(), .blocking_keep_alive = 1ms});
  rt.run([&] {
    for (int i = 0; i < 20; ++i) blocking([] {});
    while (rt.metrics().blocking_threads > 0) this_fiber::sleep_for(1ms);
    blocking([] {});  // and start again
  });
  runtime& patient = make({.threads = GetParam(), .blocking_keep_alive = std::chrono::milliseconds::max()});
  patient.run([&] {
    for (int i = 0; i < 100; ++i) blocking([] {});
    EXPECT_EQ(patient.metrics().blocking_threads, 1u);
  });
}

// A thread's end destroys its objects before the shutdown returns, also if the thread ended before.
TEST_P(Blocking, ItsThreadsAreJoinedByTheShutdown) {
  static std::atomic<int> alive;
  struct probe {
    probe() { ++alive; }
    ~probe() {
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      --alive;
    }
  };
  for (const std::chrono::milliseconds keep_alive : {0ms, 10'000ms}) {
    runtime& brief = make({.threads = GetParam(), .blocking_keep_alive = keep_alive});
    brief.run([] {
      task_group calls;
      for (int i = 0; i < 4; ++i) calls.spawn([] { blocking([] { thread_local const probe mine; }); });
      calls.wait();
    });
    EXPECT_EQ(end(brief, shutdown_mode::drain), 0u);
    EXPECT_EQ(alive, 0);
  }
}

TEST_P(Blocking, ACallCannotShutItsRuntimeDown) {
  run([&] { blocking([&] { EXPECT_THROW(rt().shutdown(shutdown_mode::cancel), usage_error); }); });
}

TEST_P(Blocking, ACancelledCallIsNotMadeOrWaitedFor) {
  runtime& rt = make({.threads = GetParam(), .blocking_threads = 1});
  rt.run([&] {
    std::binary_semaphore begun(0), gate(0);
    std::atomic<bool> ended = false, second = false;
    auto running = spawn([&] {
      const int got = blocking([&] {
        begun.release();
        gate.acquire();
        ended = true;
        return 5;
      });
      EXPECT_TRUE(ended);
      EXPECT_TRUE(this_fiber::stop_requested());
      return got;
    });
    await(begun);
    auto queued = spawn([&] { blocking([&] { second = true; }); });
    while (rt.metrics().blocking_queued == 0) this_fiber::yield();
    queued.request_stop();
    EXPECT_THROW(queued.get(), operation_cancelled);
    EXPECT_EQ(rt.metrics().blocking_queued, 0u);
    running.request_stop();
    EXPECT_FALSE(running.wait_for(1ms));
    gate.release();
    EXPECT_EQ(running.get(), 5);
    EXPECT_FALSE(second);
    auto stopped = spawn([&] {
      while (!this_fiber::stop_requested()) this_fiber::yield();
      blocking([&] { second = true; });
    });
    stopped.request_stop();
    EXPECT_THROW(stopped.get(), operation_cancelled);
    EXPECT_FALSE(second);
  });
}

TEST_P(Blocking, ADeadlineEndsTheWaitForAThread) {
  runtime& rt = make({.threads = GetParam(), .blocking_threads = 1});
  rt.run([&] {
    std::binary_semaphore begun(0), gate(0);
    auto running = spawn([&] {
      blocking([&] {
        begun.release();
        gate.acquire();
      });
    });
    await(begun);
    EXPECT_THROW(timeout(1ms, [] { blocking([] { ADD_FAILURE() << "it was made"; }); }), deadline_exceeded);
    gate.release();
    running.join();
  });
}

TEST_P(Blocking, ManyCallsFromManyFibers) {
  run([] {
    std::atomic<int> sum{0};
    task_group all;
    for (int i = 0; i < 50; ++i)
      all.spawn([&] {
        for (int k = 0; k < 40; ++k) sum += blocking([](int x) { return x; }, 1);
      });
    all.wait();
    EXPECT_EQ(sum, 2000);
  });
}

// The publisher of work starts threads. They must not inherit its blocked signals.
TEST_P(Blocking, ThreadsHaveTheSignalsOfWhoMadeTheRuntime) {
  const auto blocks_usr2 = [] {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return sigismember(&now, SIGUSR2);
  };
  runtime& rt = make(GetParam());
  std::thread outside([&] {
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
    EXPECT_EQ(rt.spawn([&] { return blocks_usr2() + blocking(blocks_usr2); }).get(), 0);
  });
  outside.join();
}

TEST(BlockingOutside, IsAnOrdinaryCallOnAPlainThread) {
  EXPECT_EQ(blocking([] { return std::this_thread::get_id(); }), std::this_thread::get_id());
}

TEST(BlockingOutside, WrongOptionsAreNamed) {
  EXPECT_THROW(runtime({.blocking_threads = 0}), std::invalid_argument);
  EXPECT_THROW(runtime({.blocking_keep_alive = -1ms}), std::invalid_argument);
}

}  // namespace
