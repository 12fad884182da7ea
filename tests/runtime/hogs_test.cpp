// A fiber that computes for long delays no other, if there is another worker.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/isolated_context.hpp>
#include <ulexite/sync/task_group.hpp>

#include <optional>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Hogs : public WorkersTest {};
INSTANTIATE_TEST_SUITE_P(Workers, Hogs, testing::Values(2, 4, 8), testing::PrintToStringParamName());

// A fiber that a hog wakes.
struct waiting_fiber {
  channel<int> values;
  std::atomic<bool> ready{false}, woken{false};
  join_handle<> fiber;

  waiting_fiber()
      : fiber(spawn([this] {
          ready = true;
          values.receive();
          woken = true;
        })) {}

  // The calling fiber keeps its worker until this one runs.
  void wake_and_hog() {
    values.send(1);
    EXPECT_TRUE(hog_until([&] { return woken.load(); }));
  }
};

TEST_P(Hogs, WorkBehindAHogRunsElsewhere) {
  run([] {
    std::atomic<int> ran{0};
    for (int i = 0; i < 10; ++i) spawn([&] { ++ran; }).detach();
    EXPECT_TRUE(hog_until([&] { return ran == 10; }));
  });
}

// All other workers have work without end, so none steals.
TEST_P(Hogs, WorkBehindAHogRunsBesideBusyWorkers) {
  run([] {
    std::atomic<bool> over{false};
    task_group busy;
    for (std::size_t i = 0; i < 4 * GetParam(); ++i)
      busy.spawn([&] {
        while (!over) this_fiber::yield();
      });
    this_fiber::sleep_for(5ms);  // until all workers have some of them
    std::atomic<int> ran{0};
    for (int i = 0; i < 100; ++i) spawn([&] { ++ran; }).detach();
    EXPECT_TRUE(hog_until([&] { return ran == 100; }));
    over = true;
    busy.wait();
  });
}

// Thefts of such fibers do not pay, so their worker wakes no others for its pushes. Yet what it pushes before a long
// computation runs.
TEST_P(Hogs, WorkPushedAfterThousandsOfTinyFibersRunsElsewhere) {
  run([] {
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 1'000; ++i) spawn([] {}).join();
      std::atomic<int> ran{0};
      const int pushed = round % 2 == 0 ? 1 : 3;
      for (int i = 0; i < pushed; ++i) spawn([&] { ++ran; }).detach();
      EXPECT_TRUE(hog_until([&] { return ran == pushed; }));
    }
  });
}

// The same with jobs.
TEST_P(Hogs, AJobPushedAfterThousandsOfTinyJobsRunsElsewhere) {
  struct flagging : job {
    std::atomic<bool> ran{false};
    flagging() {
      run = [](job* self) noexcept { static_cast<flagging*>(self)->ran = true; };
    }
  };
  run([] {
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 500; ++i) {
        flagging tiny;
        schedule(tiny);
        while (!tiny.ran) this_fiber::yield();
      }
      flagging pushed;
      schedule(pushed);
      EXPECT_TRUE(hog_until([&] { return pushed.ran.load(); }));
    }
  });
}

// Timers that fire in one turn of the loop: the first fiber that they wake computes until the others have run. Before
// that its worker has run many tiny fibers, and expects these to be as tiny.
TEST_P(Hogs, WhatTheEventLoopWokeWithAHogRunsElsewhere) {
  constexpr int sleepers = 4;
  run([] {
    for (int round = 0; round < 3; ++round) {
      std::atomic<int> awake{0};
      task_group all;
      const auto time = steady_clock::now() + 5ms;
      for (int i = 0; i < sleepers; ++i)
        all.spawn([&] {
          this_fiber::sleep_until(time);
          if (++awake == 1) EXPECT_TRUE(hog_until([&] { return awake == sleepers; }));
        });
      for (int i = 0; i < 500; ++i) spawn([] {}).join();
      all.wait();
    }
  });
}

// A woken fiber runs next on its waker's worker; but the waker continues to compute.
TEST_P(Hogs, AFiberWokenByAHogRunsElsewhere) {
  run([] {
    for (int i = 0; i < 3; ++i) {
      waiting_fiber asleep;
      wait_until([&] { return asleep.ready.load(); });
      asleep.wake_and_hog();
      asleep.fiber.join();
    }
  });
}

// No other worker is awake, and the monitor does nothing here: the waker itself wakes another worker.
TEST_P(Hogs, AFiberWokenByAHogNeedsNoMonitor) {
  runtime& rt = this->rt();
  rt.run([&] {
    const auto relieved = [&] { return rt.metrics().workers_retaken; };
    bool needed_none = false;
    for (int i = 0; i < 30 && !needed_none; ++i) {  // on a busy machine the monitor may be faster
      waiting_fiber asleep;
      wait_until([&] { return asleep.ready.load(); });
      EXPECT_TRUE(hog_until([&] { return rt.metrics().workers_sleeping + 1 == rt.metrics().workers; }));
      const auto before = relieved();
      asleep.wake_and_hog();
      needed_none = relieved() == before;
      asleep.fiber.join();
    }
    EXPECT_TRUE(needed_none);
  });
}

TEST_P(Hogs, AFiberWokenByAJobRunsElsewhere) {
  run([] {
    struct waker : job {
      channel<int> values{1};
      std::atomic<bool> woken{false}, done{false}, in_time{false};
    } one;
    one.run = [](job* self) noexcept {
      auto& here = *static_cast<waker*>(self);
      here.values.send(1);
      here.in_time = hog_until([&] { return here.woken.load(); });
      here.done = true;
    };
    auto sleeper = spawn([&] {
      one.values.receive();
      one.woken = true;
    });
    schedule(one);
    sleeper.join();
    wait_until([&] { return one.done.load(); });
    EXPECT_TRUE(one.in_time);
  });
}

TEST_P(Hogs, TimersFireBesideAHog) {
  run([] {
    std::atomic<bool> woke{false};
    auto sleeper = spawn([&] {
      for (int i = 0; i < 3; ++i) this_fiber::sleep_for(1ms);
      woke = true;
    });
    this_fiber::yield();
    EXPECT_TRUE(hog_until([&] { return woke.load(); }));
    sleeper.join();
  });
}

TEST_P(Hogs, OutsideWorkRunsBesideAHog) {
  std::atomic<bool> stop{false}, hogging{false};
  auto hog = rt().spawn([&] {
    hogging = true;
    EXPECT_TRUE(hog_until([&] { return stop.load(); }));
  });
  wait_until([&] { return hogging.load(); });
  for (int i = 0; i < 20; ++i) rt().spawn([] { this_fiber::yield(); }).join();
  stop = true;
  hog.join();
}

// The hog's fibers outlive run(), and the monitor too.
TEST_P(Hogs, AreRelievedAfterTheEndOfRunToo) {
  std::atomic<bool> done{false}, go{false};
  run([&] {
    spawn([&] {
      waiting_fiber asleep;
      wait_until([&] { return go && asleep.ready; });
      asleep.wake_and_hog();
      asleep.fiber.join();
      done = true;
    }).detach();
  });
  go = true;
  wait_until([&] { return done.load(); });
}

}  // namespace
