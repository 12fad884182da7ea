#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/mutex.hpp>

#include <mutex>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Cancel : public WorkersTest {
 protected:
  // What `operation` does in a fiber that is asked to stop while it waits there.
  template <class F>
  void expect_cancelled(F operation) {
    run([&] {
      std::atomic<bool> ready{false};
      auto handle = spawn([&] {
        ready = true;
        operation();
      });
      wait_until([&] { return ready.load(); });
      wait_until_others_wait();
      EXPECT_TRUE(handle.request_stop());
      EXPECT_FALSE(handle.request_stop());
      EXPECT_THROW(handle.get(), operation_cancelled);
    });
  }
};
ULEXITE_TEST_WORKERS(Cancel);

TEST_P(Cancel, EndsAReceiveWhichTakesNothing) {
  channel<int> values(2);
  expect_cancelled([&] { values.receive(); });
  int value = 1;
  EXPECT_EQ(values.try_send(value), channel_status::ok);
  EXPECT_EQ(values.size(), 1u) << "nobody took it";
}

TEST_P(Cancel, EndsASendWhichKeepsItsValue) {
  channel<std::unique_ptr<int>> values;
  auto kept = std::make_unique<int>(4);
  expect_cancelled([&] { values.send_for(kept, 1h); });
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, 4);
  std::unique_ptr<int> into;
  EXPECT_EQ(values.try_receive(into), channel_status::would_block);
}

TEST_P(Cancel, IsStickyAndStopsEveryLaterPoint) {
  run([] {
    std::atomic<bool> go{false};
    auto handle = spawn([&] {
      wait_until([&] { return go.load(); });
      EXPECT_THROW(this_fiber::sleep_for(1h), operation_cancelled);
      EXPECT_TRUE(this_fiber::stop_requested());
      EXPECT_THROW(this_fiber::check(), operation_cancelled);
      EXPECT_THROW(this_fiber::sleep_for(0s), operation_cancelled);
      this_fiber::yield();
      spawn([] { this_fiber::sleep_for(1us); }).join();
      mutex guard;
      const std::lock_guard lock(guard);
      return 6;
    });
    handle.request_stop();
    go = true;
    EXPECT_EQ(handle.get(), 6);
  });
}

TEST_P(Cancel, OfAnEndedFiberChangesNothing) {
  run([] {
    auto handle = spawn([] { return 1; });
    handle.join();
    EXPECT_TRUE(handle.request_stop());
    EXPECT_EQ(handle.get(), 1);
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(spawn([] { return this_fiber::stop_requested(); }).get());
  });
}

TEST_P(Cancel, PlainThreadsAreNeverAsked) {
  EXPECT_FALSE(this_fiber::stop_requested());
  this_fiber::check();
  rt().request_stop();
  this_fiber::sleep_for(1us);
}

// The request, the value and the time-out race for one wait; exactly one wins, and no value is lost or doubled.
TEST_P(Cancel, RacesWithAValueAndATimeOut) {
  run([] {
    for (int i = 0; i < times(3000); ++i) {
      channel<int> values;
      std::atomic<int> received{0};
      auto receiver = spawn([&] {
        int into = 0;
        if (values.receive_for(into, std::chrono::microseconds(i % 40)) == channel_status::ok) received += into;
      });
      auto sender = spawn([&] {
        int value = 1;
        return values.send_for(value, std::chrono::microseconds(i % 30)) == channel_status::ok;
      });
      if (i % 3 == 0) this_fiber::yield();
      receiver.request_stop();
      bool sent = false;
      try {
        sent = sender.get();
        receiver.get();
      } catch (const operation_cancelled&) {
      }
      EXPECT_EQ(received, sent ? 1 : 0);
    }
  });
}

}  // namespace
