#include "support/waiting.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/channel_ends.hpp>

#include <memory>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ChannelEnds : public WorkersTest {};
ULEXITE_TEST_WORKERS(ChannelEnds);

TEST_P(ChannelEnds, TheLastSenderEndsTheReceivers) {
  run([] {
    auto [to, from] = make_channel<int>(4);
    for (int i = 0; i < 3; ++i)
      spawn([mine = to, i] {
        for (int k = 0; k < 100; ++k) mine.send(i);
      });
    to = sender<int>();  // the only handle that did not end with a fiber
    int count = 0;
    for (const int value : from) count += value >= 0;
    EXPECT_EQ(count, 300);
    EXPECT_TRUE(from.is_closed());
    EXPECT_EQ(from.receive(), std::nullopt);
  });
}

TEST_P(ChannelEnds, TheLastReceiverEndsTheSenders) {
  auto [to, from] = make_channel<std::unique_ptr<int>>();
  auto waiting = spawn_until_it_waits(rt(), [mine = to] { mine.send(std::make_unique<int>(1)); });
  {
    auto copy = from;
    from = receiver<std::unique_ptr<int>>();
    EXPECT_FALSE(to.is_closed());
  }
  EXPECT_THROW(waiting.get(), channel_closed);
  auto value = std::make_unique<int>(2);
  EXPECT_EQ(to.try_send(value), channel_status::closed);
  EXPECT_EQ(*value, 2);
}

TEST_P(ChannelEnds, WhatIsLeftInTheChannelIsDestroyed) {
  const auto counted = std::make_shared<int>(0);
  {
    auto [to, from] = make_channel<std::shared_ptr<int>>(4);
    to.send(counted);
    to.send(counted);
    EXPECT_EQ(counted.use_count(), 3);
    EXPECT_EQ(from.size(), 2U);
    EXPECT_EQ(to.capacity(), 4U);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST_P(ChannelEnds, HaveTheTimedFormsOfAChannel) {
  auto [to, from] = make_channel<int>(1);
  int value = 5;
  EXPECT_EQ(from.receive_for(value, 1ms), channel_status::timeout);
  EXPECT_EQ(from.try_receive(value), channel_status::would_block);
  EXPECT_EQ(to.send_for(value, 1ms), channel_status::ok);
  EXPECT_EQ(to.send_until(value, steady_clock::now()), channel_status::timeout);
  EXPECT_EQ(from.receive_until(value, steady_clock::now()), channel_status::ok);
  EXPECT_TRUE(to.same_channel(from));
  EXPECT_FALSE(to.same_channel(make_channel<int>().second));
  EXPECT_TRUE(to.close());
  EXPECT_EQ(from.receive_for(value, 1ms), channel_status::closed);
}

TEST_P(ChannelEnds, StandInSelects) {
  run([] {
    auto [to, from] = make_channel<int>(1);
    EXPECT_EQ(select(on_receive(from), otherwise()), 1U);
    EXPECT_EQ(select(on_send(to, 4), otherwise()), 0U);
    EXPECT_EQ(select(on_send(to, 4), otherwise()), 1U);
    select(on_receive(from, [](std::optional<int> value) { EXPECT_EQ(value, 4); }));
    to = sender<int>();
    select(on_receive(from, [](std::optional<int> value) { EXPECT_FALSE(value); }));
  });
}

TEST_P(ChannelEnds, RefuseUseWithoutAChannel) {
  sender<int> to;
  const receiver<int> from;
  EXPECT_FALSE(to);
  EXPECT_THROW(to.send(1), usage_error);
  EXPECT_THROW((void)from.receive(), usage_error);
  EXPECT_THROW((void)from.size(), usage_error);
  auto [real, other] = make_channel<int>(1);
  to = std::move(real);
  EXPECT_FALSE(real);
  EXPECT_TRUE(to);
  to.send(1);
}

TEST(ChannelEndsCapacity, IsUnboundedAtMost) {
  EXPECT_EQ(make_channel<int>(unbounded).first.capacity(), unbounded);
  EXPECT_THROW((void)make_channel<int>(-1), usage_error);
}

TEST_P(ChannelEnds, MayGoOnAnyThreadAtAnyTime) {
  for (int i = 0; i < times(200); ++i) {
    auto [to, from] = make_channel<int>(1);
    std::thread sending([mine = std::move(to)] {
      for (int k = 0; k < 10; ++k) mine.send(k);
    });
    auto summing = rt().spawn([mine = std::move(from)] {
      int sum = 0;
      for (const int value : mine) sum += value;
      return sum;
    });
    EXPECT_EQ(summing.get(), 45);
    sending.join();
  }
}

}  // namespace
