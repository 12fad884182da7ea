#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/ticker.hpp>

#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Ticker : public WorkersTest {};
ULEXITE_TEST_WORKERS(Ticker);

// The bounds are lower ones: how late a tick may be is not ours to say.
TEST_P(Ticker, TicksOncePerPeriodAndNeverEarly) {
  run([] {
    const auto start = ulexite::steady_clock::now();
    ticker every(1ms);
    ulexite::steady_clock::time_point last = start;
    for (int i = 1; i <= 10; ++i) {
      const auto tick = every.channel().receive();
      ASSERT_TRUE(tick);
      EXPECT_GE(*tick - start, i * 1ms);
      EXPECT_LE(*tick, ulexite::steady_clock::now());
      EXPECT_GT(*tick, last);
      last = *tick;
    }
  });
}

TEST_P(Ticker, KeepsAtMostOneTickForASlowReceiver) {
  run([] {
    ticker every(100us);
    wait_until([&] { return every.channel().size() == 1; });
    const auto full = ulexite::steady_clock::now();
    wait_until([&] { return ulexite::steady_clock::now() - full > 3ms; });
    EXPECT_EQ(every.channel().size(), 1u);
    every.stop();
    EXPECT_LE(*every.channel().receive(), full) << "the later ones were missed";
    EXPECT_EQ(every.channel().receive(), std::nullopt);
  });
}

TEST_P(Ticker, StopClosesItsChannel) {
  run([] {
    ticker every(1h);
    auto stopper = spawn([&] {
      wait_until_others_wait();
      every.stop();
      every.stop();
    });
    for ([[maybe_unused]] const auto tick : every.channel()) ADD_FAILURE() << "a tick within an hour";
    EXPECT_TRUE(every.channel().is_closed());
    stopper.join();
  });
}

TEST_P(Ticker, IsDestroyedWhileItSleepsOrTicks) {
  run([] {
    for (int i = 0; i < times(300); ++i) {
      const ticker one(1h), other(1us);
      for (int k = 0; k < i % 10; ++k) this_fiber::yield();
    }
  });
}

TEST_P(Ticker, RefusesAPeriodThatIsNone) {
  run([] {
    EXPECT_THROW(ticker(0s), usage_error);
    EXPECT_THROW(ticker(-1s), usage_error);
  });
  EXPECT_THROW(ticker(1s), std::system_error) << "there is no runtime here";
}

TEST_P(Ticker, OutlivesTheDeadlineOfItsMaker) {
  run([] {
    std::unique_ptr<ticker> every;
    {
      const deadline_scope scope(1ms);
      every = std::make_unique<ticker>(2ms);
      EXPECT_THROW(this_fiber::sleep_for(1h), deadline_exceeded);
    }
    EXPECT_TRUE(every->channel().receive());
    EXPECT_TRUE(every->channel().receive());
  });
}

TEST_P(Ticker, MayHaveAPeriodLongerThanTheClockCounts) {
  run([] {
    ticker never(std::chrono::nanoseconds::max());
    EXPECT_EQ(select(on_receive(never.channel(), [](auto) { ADD_FAILURE(); }), after(2ms)), 1u);
  });
}

TEST_P(Ticker, IsACaseOfASelect) {
  run([] {
    ticker every(1ms);
    channel<int> values;
    auto sender = spawn([&] {
      for (int i = 0; i < 100; ++i) values.send(i);
      values.close();
    });
    int ticks = 0, next = 0;
    for (bool open = true; open || ticks < 3;)
      select(on_receive(every.channel(), [&](auto tick) { ticks += tick.has_value(); }),
             when(open, on_receive(values, [&](std::optional<int> v) {
                    open = v.has_value();
                    if (v) EXPECT_EQ(*v, next++);
                  })));
    EXPECT_EQ(next, 100);
    sender.join();
  });
}

TEST_P(Ticker, MayBeUsedByAThread) {
  auto made = rt().spawn([] { return std::make_unique<ticker>(1ms); });
  const std::unique_ptr<ticker> every = made.get();
  EXPECT_TRUE(every->channel().receive());
  EXPECT_TRUE(every->channel().receive());
  std::thread stopper([&] { every->stop(); });
  while (every->channel().receive()) {
  }
  stopper.join();
}

// A thread that waits for ticks must not wait for ever after their end.
TEST_P(Ticker, EndsWithItsRuntime) {
  auto made = rt().spawn([] { return std::make_unique<ticker>(1h); });
  const std::unique_ptr<ticker> every = made.get();
  end(rt(), shutdown_mode::cancel);
  EXPECT_EQ(every->channel().receive(), std::nullopt);
}

}  // namespace
