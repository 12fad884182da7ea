#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <sstream>
#include <stop_token>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Shutdown : public WorkersTest {};
ULEXITE_TEST_WORKERS(Shutdown);

TEST_P(Shutdown, OfARuntimeNeverUsedDoesNothing) {
  EXPECT_EQ(end(rt(), shutdown_mode::drain), 0u);
  EXPECT_EQ(end(make(GetParam()), shutdown_mode::cancel), 0u);
  EXPECT_EQ(end(make(GetParam()), shutdown_mode::abandon), 0u);
}

TEST_P(Shutdown, DrainWaitsUntilAllHaveEnded) {
  std::atomic<int> ended{0};
  for (int i = 0; i < 20; ++i)
    rt().spawn([&ended, i] {
          this_fiber::sleep_for(std::chrono::milliseconds(i));
          EXPECT_FALSE(this_fiber::stop_requested());
          spawn([&ended] {
            this_fiber::sleep_for(3ms);
            ++ended;
          }).detach();
        })
        .detach();
  EXPECT_EQ(end(rt(), shutdown_mode::drain), 0u);
  EXPECT_EQ(ended, 20);
}

TEST_P(Shutdown, LeavesTheFibersTheirRuntime) {
  std::atomic<bool> begun{false};
  std::ostringstream text;
  int given = 0;
  rt().spawn([&] {
        runtime& mine = current_runtime();
        wait_until([&] {  // the shutdown has begun when a spawn from outside is refused
          std::jthread([&] {
            try {
              mine.spawn([] {}).detach();
            } catch (const usage_error&) {
              begun = true;
            }
          }).join();
          return begun.load();
        });
        mine.dump(text);
        mine.resize(GetParam());
        given = mine.spawn([] { return 3; }).get();
      })
      .detach();
  EXPECT_EQ(end(rt(), shutdown_mode::drain), 0u);
  EXPECT_TRUE(begun);
  EXPECT_NE(text.str().find("fiber"), std::string::npos);
  EXPECT_EQ(given, 3);
  EXPECT_THROW(rt().dump(text), usage_error);
  EXPECT_THROW(rt().spawn([] {}), usage_error);
}

TEST_P(Shutdown, CancelEndsEveryWait) {
  std::atomic<int> waiting{0}, cancelled{0};
  auto wait = [&](auto operation) {
    rt().spawn([&, operation] {
          ++waiting;
          try {
            operation();
            ADD_FAILURE() << "was not cancelled";
          } catch (const operation_cancelled&) {
            ++cancelled;
          }
          EXPECT_TRUE(this_fiber::stop_requested());
          EXPECT_THROW(this_fiber::check(), operation_cancelled);
          EXPECT_THROW(this_fiber::sleep_for(1h), operation_cancelled) << "sticky";
        })
        .detach();
  };
  channel<int> empty, full(1);
  int value = 1;
  ASSERT_EQ(full.try_send(value), channel_status::ok);
  wait_group group(1);
  wait([] { this_fiber::sleep_for(1h); });
  wait([&] { empty.receive(); });
  wait([&] { full.send(2); });
  wait([&] { group.wait(); });
  wait([&] { group.wait_for(1h); });
  wait([&] {
    int into = 0;
    (void)empty.receive_for(into, 1h);
  });
  wait([] {
    for (;;) {
      this_fiber::check();
      this_fiber::yield();
    }
  });
  wait_until([&] { return waiting == 7; });
  EXPECT_EQ(end(rt(), shutdown_mode::cancel), 0u);
  EXPECT_EQ(cancelled, 7);
  EXPECT_EQ(full.size(), 1u);
}

TEST_P(Shutdown, CancelReachesWhatIsSpawnedLater) {
  bool second = false;
  rt().spawn([&] {
        try {
          this_fiber::sleep_for(1h);
        } catch (const operation_cancelled&) {
          spawn([&] {
            EXPECT_TRUE(this_fiber::stop_requested());
            EXPECT_THROW(this_fiber::sleep_for(1h), operation_cancelled);
            second = true;
          }).detach();
        }
      })
      .detach();
  end(rt(), shutdown_mode::cancel);
  EXPECT_TRUE(second);
}

// The request and the beginning of a wait race.
TEST_P(Shutdown, CancelMissesNobody) {
  for (int round = 0; round < times(200); ++round) {
    runtime brief({.threads = GetParam()});
    channel<int> nothing;
    for (int i = 0; i < 8; ++i)
      brief
          .spawn([&nothing, i] {
            for (int k = 0; k < i; ++k) this_fiber::yield();
            if (i % 2 == 0) nothing.receive();
            this_fiber::sleep_for(1h);
          })
          .detach();
    EXPECT_EQ(brief.shutdown(shutdown_mode::cancel), 0u);
    EXPECT_EQ(brief.metrics().lost_wakeups, 0u);
  }
}

TEST_P(Shutdown, RequestStopDoesNotWait) {
  auto handle = rt().spawn([] {
    try {
      this_fiber::sleep_for(1h);
    } catch (const operation_cancelled&) {
      return 5;
    }
    return 0;
  });
  rt().request_stop();
  rt().request_stop();
  EXPECT_EQ(handle.get(), 5);
}

TEST_P(Shutdown, StopAbandonsWhatHasNotEnded) {
  testing::internal::CaptureStderr();
  std::atomic<int> waiting{0};
  std::vector<join_handle<>> handles;
  for (int i = 0; i < 5; ++i)
    handles.push_back(rt().spawn([&] {
      ++waiting;
      this_fiber::sleep_for(1h);
      ADD_FAILURE() << "was resumed";
    }));
  wait_until([&] { return waiting == 5; });
  EXPECT_EQ(end(rt(), shutdown_mode::abandon), 5u);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("5 fibers abandoned"), std::string::npos);
  for (auto& handle : handles) {
    EXPECT_TRUE(handle.done());
    EXPECT_THROW(handle.get(), operation_cancelled);
  }
}

TEST_P(Shutdown, StopEndsTheWaitOfAThread) {
  testing::internal::CaptureStderr();
  std::atomic<bool> waiting{false}, cancelled{false};
  auto handle = rt().spawn([&] {
    waiting = true;
    this_fiber::sleep_for(1h);
  });
  std::thread joiner([&] {
    try {
      handle.get();
    } catch (const operation_cancelled&) {
      cancelled = true;
    }
  });
  wait_until([&] { return waiting.load(); });
  EXPECT_EQ(end(rt(), shutdown_mode::abandon), 1u);
  joiner.join();
  EXPECT_TRUE(cancelled);
  testing::internal::GetCapturedStderr();
}

TEST_P(Shutdown, StopEndsWhatNeverWaits) {
  testing::internal::CaptureStderr();
  std::atomic<int> running{0};
  for (int i = 0; i < 3; ++i)
    rt().spawn([&] {
          ++running;
          for (;;) this_fiber::yield();
        })
        .detach();
  wait_until([&] { return running == 3; });
  EXPECT_EQ(end(rt(), shutdown_mode::abandon), 3u);
  testing::internal::GetCapturedStderr();
}

// The fiber before it has taken the request to yield with which the end began.
TEST_P(Shutdown, StopEndsWhatYieldsOnlyOnRequest) {
  testing::internal::CaptureStderr();
  runtime& one = make(1);
  std::atomic<bool> computes{false};
  one.spawn([&] {
       spawn([] {
         for (;;) this_fiber::yield_if_requested();
       }).detach();
       computes = true;
       while (!detail::state_of(one).is_ending()) {
       }
     })
      .detach();
  wait_until([&] { return computes.load(); });
  EXPECT_LE(end(one, shutdown_mode::abandon), 2u);
  testing::internal::GetCapturedStderr();
}

TEST_P(Shutdown, StopDestroysClosuresThatNeverRan) {
  testing::internal::CaptureStderr();
  auto token = std::make_shared<int>(1);
  std::atomic<int> begun{0};
  const auto sleeper = [&begun, token](std::chrono::nanoseconds time) {
    return [&begun, token, time] {
      ++begun;
      this_fiber::sleep_for(time);
    };
  };
  rt().run([&] {
    for (int i = 0; i < 50; ++i) spawn(sleeper(0s)).detach();
    spawn({.stack_size = 64 * 1024}, sleeper(1h)).detach();
  });
  end(rt(), shutdown_mode::abandon);
  EXPECT_LE(token.use_count(), 2 + begun) << "at most those that stand on a stack, and two here";
  testing::internal::GetCapturedStderr();
}

// They wait for each other when they are abandoned, one after the other.
TEST_P(Shutdown, StopAbandonsFibersThatWaitForEachOther) {
  testing::internal::CaptureStderr();
  std::atomic<int> waiting{0};
  mutex held;
  condition_variable never;
  auto token = std::make_shared<int>(1);
  for (int i = 0; i < 4; ++i) {
    rt().spawn([&] {
          ++waiting;
          auto child = spawn([&] {
            ++waiting;
            this_fiber::sleep_for(1h);
          });
          child.join();
        })
        .detach();
    rt().spawn([&] {
          std::unique_lock lock(held);
          ++waiting;
          never.wait(lock);
        })
        .detach();
  }
  wait_until([&] { return waiting == 12; });
  EXPECT_EQ(end(rt(), shutdown_mode::abandon), 12u);
  testing::internal::GetCapturedStderr();
}

// They are on stacks that then belong to other fibers.
TEST_P(Shutdown, NobodyCallsTheStopCallbacksOfAbandonedFibers) {
  testing::internal::CaptureStderr();
  std::atomic<int> waiting{0}, called{0};
  std::vector<join_handle<>> handles;
  for (int i = 0; i < 4; ++i)
    handles.push_back(rt().spawn([&](const std::stop_token& mine) {
      const std::stop_callback count(mine, [&] { ++called; });
      ++waiting;
      this_fiber::sleep_for(1h);
    }));
  wait_until([&] { return waiting == 4; });
  EXPECT_EQ(end(rt(), shutdown_mode::abandon), 4u);
  rt().request_stop();
  for (auto& handle : handles) {
    handle.request_stop();
    EXPECT_TRUE(handle.get_stop_token().stop_requested());
  }
  EXPECT_EQ(called, 0);
  testing::internal::GetCapturedStderr();
}

TEST_P(Shutdown, StopInTheMidstOfEverything) {
  testing::internal::CaptureStderr();
  for (int round = 0; round < times(50); ++round) {
    runtime brief({.threads = GetParam()});
    channel<int> values(4);
    std::atomic<int> passed{0};
    for (int i = 0; i < 4; ++i) {
      brief
          .spawn([&] {
            for (;;) values.send(1);
          })
          .detach();
      brief
          .spawn([&] {
            for (;;) passed += *values.receive();
          })
          .detach();
      brief
          .spawn([&] {
            for (;;) spawn([&] { this_fiber::yield(); }).join();
          })
          .detach();
      brief
          .spawn([&] {
            for (;;) this_fiber::sleep_for(100us);
          })
          .detach();
    }
    wait_until([&] { return passed > 100; });
    EXPECT_GE(brief.shutdown(shutdown_mode::abandon), 16u);
  }
  testing::internal::GetCapturedStderr();
}

// A thread's send wakes the last fiber; the runtime may be destroyed before the send returns.
TEST_P(Shutdown, MayOvertakeTheThreadThatWokeTheLastFiber) {
  for (int round = 0; round < times(500); ++round) {
    channel<int> last;
    std::thread sender;
    {
      runtime brief({.threads = GetParam()});
      auto handle = brief.spawn([&] { last.receive(); });
      sender = std::thread([&] { last.send(1); });
      handle.join();
      brief.shutdown(shutdown_mode::drain);
    }
    sender.join();
  }
}

}  // namespace
