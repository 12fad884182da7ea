// The code of docs/other-engines.md for NATS, examples/engines/nats.hpp, against a nats-server.

#include "../../examples/engines/nats.hpp"

#include "support/cancellation.hpp"
#include "support/clean_runtime.hpp"
#include "support/nats_server.hpp"
#include "support/watchdog.hpp"

#include <ulexite.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace ulexite::test {
namespace {

namespace ux = ulexite;
using namespace std::chrono_literals;
using examples::nats_connection;
using examples::nats_message;
using examples::nats_subscription;

// One nats-server for all tests. A test that ends it starts it again.
class Nats : public testing::TestWithParam<std::size_t> {
 protected:
  static void SetUpTestSuite() {
    if (!nats_server::installed()) return;
    server_ = std::make_unique<nats_server>();
    // cnats makes the threads and descriptors of its own that stay now, before a test counts descriptors.
    ux::run([] { const nats_connection once(server_->url()); });
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (!server_) GTEST_SKIP() << "nats-server is not installed (Debian: nats-server)";
  }

  template <class Body>
  void in_runtime(Body&& body) {
    run_and_leave_nothing({.threads = GetParam()}, std::forward<Body>(body));
  }
  static nats_server& server() { return *server_; }

 private:
  inline static std::unique_ptr<nats_server> server_;
  const watchdog watchdog_{"a test of NATS", nullptr, 120};
};
INSTANTIATE_TEST_SUITE_P(Workers, Nats, testing::Values(1, 2, 4, 16), testing::PrintToStringParamName());

// Those that wait for cnats to notice something.
class NatsPatience : public Nats {};
INSTANTIATE_TEST_SUITE_P(Workers, NatsPatience, testing::Values(1, 4), testing::PrintToStringParamName());

// Waits until the connection is there, or is not.
void await(const nats_connection& bus, bool up) {
  auto states = bus.up().subscribe();
  while (bus.up().get() != up) ASSERT_TRUE(states.receive().has_value());
}

// Waits until what is published on `bus` arrives: the server knows the subscription from here on. What was published
// before has been received, or is lost.
void await_echo(nats_connection& bus, nats_subscription& of, const std::string& subject) {
  for (int i = 0;; ++i) {
    const std::string text = "echo " + std::to_string(i);
    bus.publish(subject, text);
    for (nats_message heard; of.messages().receive_for(heard, 200ms) == channel_status::ok;)
      if (text_of(heard) == text) return;
  }
}

TEST_P(Nats, ThePageWorks) {
  std::vector<std::string> said;
  in_runtime([&] {
    const std::string url = server().url();
    const auto print = [&](std::string text) { said.push_back(std::move(text)); };

    // quote begins
    nats_connection bus(url);  // "nats://127.0.0.1:4222"
    nats_subscription rooms(bus, "rooms.*");
    ux::scope([&](ux::task_group& group) {
      group.spawn([&] {
        for (int i = 0; i < 3; ++i)
          if (auto message = rooms.receive())
            print(std::string(natsMsg_GetSubject(message->get())) + ": " + std::string(text_of(*message)));
      });
      for (const char* each : {"one", "two", "three"}) bus.publish("rooms.lobby", each);
    });
    // quote ends
  });
  EXPECT_EQ(said, (std::vector<std::string>{"rooms.lobby: one", "rooms.lobby: two", "rooms.lobby: three"}));
}

TEST_P(Nats, ManyFibersPublishAndReceive) {
  in_runtime([&] {
    constexpr int fibers = 50, each = 100;
    nats_connection one(server().url()), two(server().url());
    nats_subscription numbers(two, "numbers", fibers * each);
    await_echo(two, numbers, "numbers");
    std::set<std::string> got;
    scope([&](task_group& group) {
      for (int f = 0; f < fibers; ++f)
        group.spawn([&, f] {
          for (int i = 0; i < each; ++i) one.publish("numbers", std::to_string(f * each + i));
        });
      while (got.size() < fibers * each) {
        const auto message = numbers.receive();
        ASSERT_TRUE(got.emplace(text_of(message.value())).second) << text_of(*message) << " came twice";
      }
    });
    EXPECT_EQ(one.lost(), 0u);
    EXPECT_EQ(numbers.dropped(), 0u);
  });
}

TEST_P(Nats, TheEndPublishesWhatIsLeft) {
  in_runtime([&] {
    nats_connection hears(server().url());
    nats_subscription last(hears, "last", 2000);
    await_echo(hears, last, "last");
    {
      nats_connection bus(server().url());
      for (int i = 0; i < 1000; ++i) bus.publish("last", std::to_string(i));
    }
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(text_of(last.receive().value()), std::to_string(i));
  });
}

TEST_P(NatsPatience, AFrozenServerIsNoticedAndJoinedAgain) {
  in_runtime([&] {
    nats_connection bus(server().url());
    nats_subscription rooms(bus, "freeze");
    await_echo(bus, rooms, "freeze");

    const std::string large(10'000, 'x');
    for (bool full = false; !full;) {  // again, if this machine is so busy that the loss is noticed before
      blocking([&] { server().freeze(); });
      // The thread that publishes waits in cnats for the server, so its channel fills. The fiber never waits.
      while (!full && bus.up().get()) full = !bus.try_publish("freeze.large", large);
      await(bus, false);
      bus.publish("freeze", "nobody hears this");
      while (bus.lost() == 0) this_fiber::sleep_for(1ms);

      blocking([&] { server().thaw(); });
      await(bus, true);
      await_echo(bus, rooms, "freeze");
    }
  });
}

TEST_P(NatsPatience, AServerThatDiedIsNoticedAndJoinedAgain) {
  in_runtime([&] {
    nats_connection bus(server().url());
    nats_subscription rooms(bus, "restart");
    await_echo(bus, rooms, "restart");
    for (int i = 0; i < 2; ++i) {
      blocking([&] { server().kill(); });
      await(bus, false);
      blocking([&] { server().start(); });
      await(bus, true);
      await_echo(bus, rooms, "restart");
    }
  });
}

TEST_P(NatsPatience, EndsWhileTheServerIsFrozenOrDead) {
  in_runtime([&] {
    for (const bool noticed : {false, true}) {
      auto bus = std::make_unique<nats_connection>(server().url());
      auto rooms = std::make_unique<nats_subscription>(*bus, "end");
      blocking([&] { server().freeze(); });
      if (noticed) await(*bus, false);
      for (int i = 0; i < 100; ++i) bus->publish("end", std::string(50'000, 'x'));
      rooms.reset();
      bus.reset();
      blocking([&] { server().thaw(); });
    }
    auto bus = std::make_unique<nats_connection>(server().url());
    auto rooms = std::make_unique<nats_subscription>(*bus, "end");
    blocking([&] { server().kill(); });
    await(*bus, false);
    rooms.reset();
    bus.reset();
    blocking([&] { server().start(); });
  });
}

// The last callback has returned before anything is freed that it uses.
TEST_P(Nats, EndsWhileMessagesArrive) {
  in_runtime([&] {
    std::atomic<bool> over{false};
    scope([&](task_group& group) {
      group.spawn([&] {
        nats_connection bus(server().url());
        for (int i = 0; !over; ++i) bus.publish("flood", std::to_string(i));
      });
      for (int i = 0; i < times(30); ++i) {
        nats_connection bus(server().url());
        for (int k = 0; k < 3; ++k) {
          nats_subscription flood(bus, "flood", 4);
          ASSERT_TRUE(flood.receive().has_value());
        }
      }
      over = true;
    });
  });
}

TEST_P(Nats, AStoppedOrLateFiberLeavesAtOnce) {
  in_runtime([&] {
    nats_connection bus(server().url());
    nats_subscription silent(bus, "silent");
    auto waits = spawn([&] { static_cast<void>(silent.receive()); });
    waits.request_stop();
    EXPECT_THROW(waits.get(), operation_cancelled);
    EXPECT_THROW(timeout(5ms, [&] { static_cast<void>(silent.receive()); }), deadline_exceeded);
    // A fiber that is stopped may also end the objects.
    auto ends = spawn([&] {
      nats_connection mine(server().url());
      nats_subscription its(mine, "silent");
      static_cast<void>(its.receive());
    });
    this_fiber::sleep_for(20ms);
    ends.request_stop();
    EXPECT_THROW(ends.get(), operation_cancelled);
    // Nor does the deadline of the fiber that made a connection end it.
    std::unique_ptr<nats_connection> kept;
    for (auto time = 100ms; !kept; time *= 2)
      EXPECT_THROW(timeout(time,
                           [&] {
                             kept = std::make_unique<nats_connection>(server().url());
                             static_cast<void>(silent.receive());
                           }),
                   deadline_exceeded);
    nats_subscription heard(*kept, "kept");
    await_echo(*kept, heard, "kept");
  });
}

TEST_P(Nats, WhatFindsNoRoomIsCounted) {
  in_runtime([&] {
    nats_connection bus(server().url());
    nats_subscription small(bus, "small", 2);  // which the server knows before what follows on the same connection
    for (int i = 0; i < 10; ++i) bus.publish("small", std::to_string(i));
    while (small.dropped() < 8) this_fiber::sleep_for(1ms);
    EXPECT_EQ(text_of(small.receive().value()), "0");
    EXPECT_EQ(text_of(small.receive().value()), "1");
  });
}

TEST_P(Nats, RefusalsSayWhatWasWrong) {
  in_runtime([&] {
    EXPECT_EQ(message_of<std::runtime_error>([] { const nats_connection to("nats://127.0.0.1:1"); }),
              "nats: connecting to nats://127.0.0.1:1: No server available for connection");
    nats_connection bus(server().url());
    EXPECT_NE(message_of<std::runtime_error>([&] {
                const nats_subscription to(bus, "a..b");
              }).find("subscribing to \"a..b\""),
              std::string::npos);
    bus.publish("too large", std::string(2 << 20, 'x'));  // the server's limit is a megabyte
    while (bus.lost() == 0) this_fiber::sleep_for(1ms);
  });
}

}  // namespace
}  // namespace ulexite::test
