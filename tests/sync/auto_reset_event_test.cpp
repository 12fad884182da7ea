#include "support/waiting.hpp"

#include <ulexite/sync/auto_reset_event.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <memory>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class AutoResetEvent : public WorkersTest {};
ULEXITE_TEST_WORKERS(AutoResetEvent);

constinit auto_reset_event made_at_compile_time;

TEST_P(AutoResetEvent, KeepsOneSetAndLetsOneWaitPass) {
  const auto check = [] {
    auto_reset_event event;
    EXPECT_FALSE(event.try_wait());
    event.set();
    event.set();
    event.wait();
    EXPECT_FALSE(event.try_wait());
    EXPECT_FALSE(event.wait_for(1ms));
    event.set();
    event.reset();
    event.reset();
    EXPECT_FALSE(event.wait_until(steady_clock::now()));
    EXPECT_TRUE(auto_reset_event(true).try_wait());
  };
  run(check);
  check();
}

TEST_P(AutoResetEvent, WakesOneWaitForEachSet) {
  auto_reset_event event;
  std::atomic<int> passed{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 4; ++i)
    all.push_back(spawn_until_it_waits(rt(), [&] {
      event.wait();
      ++passed;
    }));
  for (int i = 1; i <= 4; ++i) {
    event.set();
    wait_until([&] { return passed == i; });
    wait_until_all_wait(rt());
    EXPECT_EQ(passed, i);
  }
  for (auto& each : all) each.get();
  EXPECT_FALSE(event.try_wait());
}

// Two hand a turn to and fro: a lost set would stop them.
TEST_P(AutoResetEvent, LosesNoSet) {
  auto_reset_event ping, pong;
  const int turns = times(2000);
  std::thread other([&] {
    for (int i = 0; i < turns; ++i) {
      ping.wait();
      pong.set();
    }
  });
  run([&] {
    for (int i = 0; i < turns; ++i) {
      ping.set();
      pong.wait();
    }
  });
  other.join();
  EXPECT_FALSE(ping.try_wait() || pong.try_wait());
}

TEST_P(AutoResetEvent, IsACancellationPoint) {
  auto_reset_event event;
  expect_stop_ends(rt(), [&] { event.wait(); });
  expect_stop_forbids(rt(), [&] { event.wait(); });
  event.set();
  EXPECT_TRUE(event.try_wait());  // those above took none
  EXPECT_THROW(run([&] { timeout(1ms, [&] { event.wait(); }); }), deadline_exceeded);
}

TEST_P(AutoResetEvent, MayBeDestroyedAfterTheLastWait) {
  run([&] {
    for (int i = 0; i < times(300); ++i) {
      auto event = std::make_unique<auto_reset_event>();
      auto setter = spawn([&here = *event] { here.set(); });
      event->wait();
      event.reset();
      setter.get();
    }
  });
}

}  // namespace
