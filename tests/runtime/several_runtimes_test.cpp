#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <mutex>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class SeveralRuntimes : public WorkersTest {
 protected:
  runtime& other() {
    if (!other_) other_ = &make(GetParam());
    return *other_;
  }

 private:
  runtime* other_ = nullptr;
};
ULEXITE_TEST_WORKERS(SeveralRuntimes);

TEST_P(SeveralRuntimes, AFiberOfOneJoinsAFiberOfTheOther) {
  for (int i = 0; i < times(500); ++i) {
    auto there = other().spawn([i] {
      this_fiber::yield();
      return i;
    });
    EXPECT_EQ(run([&] { return there.get(); }), i);
  }
}

TEST_P(SeveralRuntimes, AFiberOfOneSpawnsIntoTheOther) {
  run([&] {
    for (int i = 0; i < times(500); ++i) EXPECT_EQ(other().spawn([i] { return i; }).get(), i);
  });
  other().run([] {});
}

TEST_P(SeveralRuntimes, ChannelsConnectThem) {
  channel<int> there, back(3);
  const int count = times(5000);
  auto echo = other().spawn([&] {
    for (const int value : there) back.send(value + 1);
    back.close();
  });
  auto producer = rt().spawn([&] {
    for (int i = 0; i < count; ++i) there.send(i);
    there.close();
  });
  run([&] {
    int expected = 1;
    for (const int value : back) EXPECT_EQ(value, expected++);
    EXPECT_EQ(expected, count + 1);
  });
  producer.join();
  echo.join();
}

TEST_P(SeveralRuntimes, ShareAMutexAndAGroup) {
  mutex guard;
  long count = 0;
  const int rounds = times(5000);
  wait_group all(4);
  for (runtime* each : {&rt(), &other(), &rt(), &other()})
    each->spawn([&] {
          for (int i = 0; i < rounds; ++i) {
            const std::lock_guard lock(guard);
            ++count;
          }
          all.done();
        })
        .detach();
  all.wait();
  EXPECT_EQ(count, 4L * rounds);
}

TEST_P(SeveralRuntimes, StopOneAndNotTheOther) {
  auto here = rt().spawn([] { this_fiber::sleep_for(1h); });
  auto there = other().spawn([] {
    this_fiber::sleep_for(2ms);
    return this_fiber::stop_requested();
  });
  rt().request_stop();
  EXPECT_THROW(here.get(), operation_cancelled);
  EXPECT_FALSE(there.get());
}

// run() keeps its fiber, for any time, and the monitors of both go to sleep during this time and wake again.
TEST_P(SeveralRuntimes, OneRunsInAFiberOfTheOther) {
  run([&] {
    for (int i = 0; i < 2; ++i) {
      const int value = other().run([] {
        this_fiber::sleep_for(100ms);
        task_group all;
        for (int k = 0; k < 10; ++k) all.spawn([] { this_fiber::yield(); });
        all.wait();
        return 7;
      });
      EXPECT_EQ(value, 7);
    }
  });
}

TEST_P(SeveralRuntimes, OneIsMadeAndEndedInAFiberOfTheOther) {
  run([&] {
    for (int i = 0; i < times(50); ++i) {
      runtime brief({.threads = GetParam()});
      std::atomic<int> ended{0};
      for (int k = 0; k < 4; ++k)
        brief
            .spawn([&] {
              this_fiber::sleep_for(100us);
              ++ended;
            })
            .detach();
      EXPECT_EQ(brief.run([] { return 1; }), 1);
      EXPECT_EQ(brief.shutdown(shutdown_mode::drain), 0u);
      EXPECT_EQ(ended, 4);
    }
    runtime cancelled({.threads = GetParam()});
    cancelled.spawn([] { this_fiber::sleep_for(1h); }).detach();
  });
}

TEST_P(SeveralRuntimes, ComeAndGoOnManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([threads_each = GetParam()] {
      for (int i = 0; i < times(100); ++i) {
        runtime brief({.threads = threads_each});
        const int sum = brief.run([] {
          auto one = spawn([] { return 1; }), two = spawn([] { return 2; });
          return one.get() + two.get();
        });
        EXPECT_EQ(sum, 3);
        EXPECT_EQ(brief.metrics().lost_wakeups, 0u);
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
