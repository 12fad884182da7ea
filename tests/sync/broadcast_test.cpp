#include "support/waiting.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/broadcast.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/watch.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Broadcast : public WorkersTest {};
ULEXITE_TEST_WORKERS(Broadcast);

TEST_P(Broadcast, GivesEveryReceiverEveryValue) {
  broadcast<int> from(1000);
  std::vector<join_handle<long>> fibers;
  const auto sum = [](broadcast_receiver<int> mine) {
    long total = 0;
    for (const int value : mine) total += value;
    EXPECT_EQ(mine.missed(), 0U);
    return total;
  };
  for (int i = 0; i < 5; ++i) fibers.push_back(rt().spawn([&, mine = from.subscribe()] { return sum(mine); }));
  long on_thread = 0;
  std::thread thread([&, mine = from.subscribe()] { on_thread = sum(mine); });
  run([&] {
    for (int i = 1; i <= 500; ++i) from.send(i);
    auto late = from.subscribe();
    from.send(1000);
    EXPECT_EQ(late.receive(), 1000);
    EXPECT_TRUE(from.close());
    EXPECT_FALSE(from.close());
    EXPECT_EQ(late.receive(), std::nullopt);
    EXPECT_THROW(from.send(1), channel_closed);
  });
  for (auto& each : fibers) EXPECT_EQ(each.get(), 500 * 501 / 2 + 1000);
  thread.join();
  EXPECT_EQ(on_thread, 500 * 501 / 2 + 1000);
}

TEST_P(Broadcast, ASlowReceiverMissesTheOldestAndCanTell) {
  broadcast<std::string> from(3);
  auto slow = from.subscribe();
  for (int i = 0; i < 10; ++i) from.send(std::to_string(i));
  EXPECT_EQ(slow.missed(), 0U);
  EXPECT_EQ(slow.receive(), "7");
  EXPECT_EQ(slow.missed(), 7U);
  auto copy = slow;
  EXPECT_EQ(slow.receive(), "8");
  EXPECT_EQ(copy.receive(), "8");
  std::string value;
  EXPECT_EQ(slow.try_receive(value), channel_status::ok);
  EXPECT_EQ(value, "9");
  EXPECT_EQ(slow.try_receive(value), channel_status::would_block);
  EXPECT_EQ(slow.receive_for(value, 1ms), channel_status::timeout);
  EXPECT_EQ(slow.receive_until(value, steady_clock::now()), channel_status::timeout);
  EXPECT_EQ(slow.missed(), 7U);
  EXPECT_THROW(broadcast<int>(0), usage_error);
}

TEST_P(Broadcast, ReceiversMayOutliveItAndReadTheRest) {
  auto from = std::make_unique<broadcast<int>>(4);
  auto receiver = from->subscribe();
  auto waiter = spawn_until_it_waits(rt(), [mine = receiver]() mutable {
    EXPECT_EQ(mine.receive(), 1);
    return mine.receive();
  });
  from->send(1);
  from.reset();
  EXPECT_EQ(waiter.get(), std::nullopt);
  EXPECT_EQ(receiver.receive(), 1);
  EXPECT_EQ(receiver.receive(), std::nullopt);
}

TEST_P(Broadcast, RefusesSizesThatNoMemoryHolds) {
  EXPECT_THROW(broadcast<int>(0), usage_error);
  EXPECT_THROW(broadcast<int>{unbounded}, usage_error);
}

TEST_P(Broadcast, StandsInSelects) {
  broadcast<int> from(2);
  auto receiver = from.subscribe();
  int got = 0;
  const auto take = [&](std::optional<int> value) { got = value.value_or(-1); };
  EXPECT_EQ(run([&] { return select(on_receive(receiver, take), otherwise()); }), 1U);
  auto waiter = spawn_until_it_waits(rt(), [&] { return select(on_receive(receiver, take), after(10s)); });
  from.send(5);
  EXPECT_EQ(waiter.get(), 0U);
  EXPECT_EQ(got, 5);
  auto closed = spawn_until_it_waits(rt(), [&] { return select(on_receive(receiver, take), after(10s)); });
  from.close();
  EXPECT_EQ(closed.get(), 0U);
  EXPECT_EQ(got, -1);
}

TEST_P(Broadcast, IsACancellationPointThatReadsNothing) {
  broadcast<int> from(2);
  auto receiver = from.subscribe();
  expect_stop_ends(rt(), [&] { (void)receiver.receive(); });
  from.send(3);
  expect_stop_forbids(rt(), [&] { (void)receiver.receive(); });
  EXPECT_EQ(receiver.receive(), 3);
}

struct throws_when_copied {
  bool now = false;
  throws_when_copied() = default;
  throws_when_copied(const throws_when_copied& other) : now(other.now) {
    if (now) throw std::runtime_error("no copy");
  }
};

TEST_P(Broadcast, AFailedCopyIsTheReceiversAlone) {
  broadcast<throws_when_copied> from(2);
  auto receiver = from.subscribe();
  from.send({});
  EXPECT_TRUE(receiver.receive());
  broadcast<std::shared_ptr<int>> counted(2);
  const auto value = std::make_shared<int>();
  counted.send(value);
  counted.send(value);
  counted.send(value);
  EXPECT_EQ(value.use_count(), 3);  // the first was replaced, and destroyed
}

TEST_P(Broadcast, AReceiverThatWasMovedFromIsRefused) {
  run([] {
    const broadcast<int> from(4);
    auto first = from.subscribe();
    auto second = std::move(first);
    int value = 0;
    EXPECT_THROW(static_cast<void>(first.try_receive(value)), usage_error);
    EXPECT_THROW(static_cast<void>(first.receive()), usage_error);
    EXPECT_THROW(static_cast<void>(on_receive(first)), usage_error);
    EXPECT_EQ(second.try_receive(value), channel_status::would_block);
    const watch<int> setting(1);
    auto third = setting.subscribe();
    const auto fourth = std::move(third);
    EXPECT_THROW(static_cast<void>(third.get()), usage_error);
    EXPECT_THROW(static_cast<void>(third.has_changed()), usage_error);
    EXPECT_FALSE(fourth.has_changed());
  });
}

}  // namespace
