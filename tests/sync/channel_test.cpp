#include "support/crowd.hpp"
#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/task_group.hpp>

#include <memory>
#include <numeric>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Channel : public WorkersTest {};
ULEXITE_TEST_WORKERS(Channel);

TEST_P(Channel, RendezvousHandsEachValueOver) {
  run([] {
    channel<int> values;
    EXPECT_EQ(values.capacity(), 0u);
    std::atomic<int> sent{0};
    auto sender = spawn([&] {
      for (int i = 0; i < 5; ++i) {
        values.send(i);
        ++sent;
      }
    });
    for (int i = 0; i < 5; ++i) {
      wait_until_others_wait();
      EXPECT_LE(sent, i) << "a send returned before its receive";
      EXPECT_EQ(values.receive(), i);
    }
    sender.join();
    EXPECT_EQ(values.size(), 0u);
  });
}

TEST_P(Channel, BufferedSendsWaitOnlyWhenItIsFull) {
  run([] {
    channel<int> values(3);
    for (int i = 0; i < 3; ++i) values.send(i);
    EXPECT_EQ(values.size(), 3u);
    int more = 3;
    EXPECT_EQ(values.try_send(more), channel_status::would_block);
    EXPECT_EQ(values.send_for(more, 1ms), channel_status::timeout);
    EXPECT_EQ(more, 3);
    auto sender = spawn([&] { values.send(3); });
    for (int i = 0; i < 4; ++i) EXPECT_EQ(values.receive(), i);
    sender.join();
    EXPECT_EQ(values.try_receive(more), channel_status::would_block);
  });
}

TEST_P(Channel, UnboundedSendsNeverWait) {
  run([] {
    channel<int> values(unbounded);
    for (int i = 0; i < 5000; ++i) values.send(i);
    EXPECT_EQ(values.size(), 5000u);
    for (int i = 0; i < 5000; ++i) EXPECT_EQ(values.receive(), i);
  });
}

TEST(ChannelCapacity, IsUnboundedAtMost) {
  EXPECT_EQ(channel<int>(unbounded).capacity(), unbounded);
  EXPECT_THROW(channel<int>(unbounded + 1), usage_error);
  try {
    channel<int> none(-1);
    FAIL();
  } catch (const usage_error& refused) {
    EXPECT_NE(std::string(refused.what()).find(std::to_string(SIZE_MAX)), std::string::npos) << refused.what();
  }
}

TEST_P(Channel, ClosedDrainsThenGivesNothing) {
  run([] {
    channel<int> values(4);
    values.send(1);
    values.send(2);
    EXPECT_FALSE(values.is_closed());
    EXPECT_TRUE(values.close());
    EXPECT_FALSE(values.close());
    EXPECT_TRUE(values.is_closed());
    EXPECT_THROW(values.send(3), channel_closed);
    int value = 3;
    EXPECT_EQ(values.try_send(value), channel_status::closed);
    EXPECT_EQ(values.send_for(value, 1h), channel_status::closed);
    EXPECT_EQ(value, 3);
    EXPECT_EQ(values.receive(), 1);
    EXPECT_EQ(values.try_receive(value), channel_status::ok);
    EXPECT_EQ(value, 2);
    EXPECT_EQ(values.receive(), std::nullopt);
    EXPECT_EQ(values.try_receive(value), channel_status::closed);
    EXPECT_EQ(values.receive_for(value, 1h), channel_status::closed);
    EXPECT_EQ(value, 2);
  });
}

TEST_P(Channel, CloseWakesEverybody) {
  run([] {
    channel<int> empty, full(1);
    full.send(0);
    std::atomic<int> waiting{0}, refused{0}, nothing{0};
    task_group all;
    for (int i = 0; i < 20; ++i) {
      all.spawn([&, i] {
        ++waiting;
        std::unique_ptr<int> kept;
        int value = i;
        if (i % 2 == 0) {
          EXPECT_THROW(full.send(i), channel_closed);
        } else {
          EXPECT_EQ(full.send_for(value, 1h), channel_status::closed);
          EXPECT_EQ(value, i);
        }
        ++refused;
      });
      all.spawn([&] {
        ++waiting;
        EXPECT_EQ(empty.receive(), std::nullopt);
        ++nothing;
      });
    }
    wait_until([&] { return waiting == 40; });
    wait_until_others_wait();
    full.close();
    empty.close();
    all.wait();
    EXPECT_EQ(refused, 20);
    EXPECT_EQ(nothing, 20);
    EXPECT_EQ(full.receive(), 0);
  });
}

TEST_P(Channel, RangeForReceivesAll) {
  run([] {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{2}, unbounded}) {
      channel<int> values(capacity);
      auto sender = spawn([&] {
        for (int i = 1; i <= 100; ++i) values.send(i);
        values.close();
      });
      int sum = 0;
      for (const int value : values) sum += value;
      EXPECT_EQ(sum, 5050);
      sender.join();
    }
  });
}

TEST_P(Channel, CarriesWhatCanOnlyBeMoved) {
  run([] {
    channel<std::unique_ptr<int>> values;
    auto sender = spawn([&] {
      values.send(std::make_unique<int>(1));
      auto two = std::make_unique<int>(2);
      EXPECT_EQ(values.send_for(two, 1h), channel_status::ok);
      EXPECT_FALSE(two);
      auto three = std::make_unique<int>(3);
      while (values.try_send(three) != channel_status::ok) this_fiber::yield();
      EXPECT_FALSE(three);
    });
    EXPECT_EQ(**values.receive(), 1);
    std::unique_ptr<int> into;
    EXPECT_EQ(values.receive_until(into, ulexite::steady_clock::now() + 1h), channel_status::ok);
    EXPECT_EQ(*into, 2);
    EXPECT_EQ(**values.receive(), 3);
    sender.join();
  });
}

TEST_P(Channel, KeepsTheValueOfASendThatFails) {
  run([] {
    channel<std::unique_ptr<int>> values;
    auto kept = std::make_unique<int>(5);
    EXPECT_EQ(values.try_send(kept), channel_status::would_block);
    EXPECT_EQ(values.send_for(kept, 1ms), channel_status::timeout);
    EXPECT_EQ(values.send_until(kept, ulexite::steady_clock::now()), channel_status::timeout);
    EXPECT_EQ(values.send_for(kept, -1h), channel_status::timeout);
    auto closer = spawn([&] { values.close(); });
    EXPECT_EQ(values.send_for(kept, 1h), channel_status::closed);
    ASSERT_TRUE(kept);
    EXPECT_EQ(*kept, 5);
    closer.join();
  });
}

TEST_P(Channel, TimesOutNoEarlierThanAsked) {
  run([] {
    channel<int> values;
    int value = 0;
    const auto start = ulexite::steady_clock::now();
    EXPECT_EQ(values.receive_for(value, 2ms), channel_status::timeout);
    EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    EXPECT_EQ(values.receive_until(value, ulexite::steady_clock::time_point(-1ns)), channel_status::timeout);
    EXPECT_EQ(values.receive_until(value, ulexite::steady_clock::now() - 1h), channel_status::timeout);
  });
}

// Senders in the order in which they came, and then receivers.
TEST_F(RuntimeTest, ChannelServesFirstInFirstOut) {
  make(1).run([] {
    channel<int> values;
    task_group all;
    for (int i = 0; i < 10; ++i) all.spawn([&, i] { values.send(i); });
    for (int i = 0; i < 3; ++i) this_fiber::yield();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(values.receive(), i);
    std::vector<int> got(10);
    for (std::size_t i = 0; i < 10; ++i) all.spawn([&, i] { got[i] = *values.receive(); });
    for (int i = 0; i < 3; ++i) this_fiber::yield();
    for (int i = 0; i < 10; ++i) values.send(i);
    all.wait();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
  });
}

// Values of one sender reach each receiver in order; every value arrives once.
void cross(runtime& rt, std::size_t capacity, int fiber_senders, int thread_senders, int fiber_receivers,
           int thread_receivers) {
  const int each = times(2000);
  const int senders = fiber_senders + thread_senders;
  channel<std::pair<int, int>> values(capacity);
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(senders * each));
  auto send_all = [&](int who) {
    for (int i = 0; i < each; ++i) values.send({who, i});
  };
  auto receive_all = [&] {
    std::vector<int> last(static_cast<std::size_t>(senders), -1);
    while (const auto value = values.receive()) {
      const auto [who, number] = *value;
      EXPECT_GT(number, std::exchange(last[static_cast<std::size_t>(who)], number));
      ++seen[static_cast<std::size_t>(who * each + number)];
    }
  };
  crowd receiving(rt, fiber_receivers, thread_receivers, receive_all);
  crowd(rt, fiber_senders, thread_senders, send_all).join();
  values.close();
  receiving.join();
  for (const auto& count : seen) ASSERT_EQ(count, 1);
}

TEST_P(Channel, ManyFibersExchangeEachValueOnce) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{16}, unbounded})
    cross(rt(), capacity, 6, 0, 6, 0);
}

TEST_P(Channel, ThreadsAndFibersExchangeEachValueOnce) {
  cross(rt(), 0, 2, 2, 2, 2);
  cross(rt(), 4, 0, 2, 3, 0);
  cross(rt(), 1, 3, 0, 0, 2);
}

TEST_F(RuntimeTest, ChannelConnectsPlainThreadsWithoutARuntime) {
  channel<int> there, back(1);
  std::thread echo([&] {
    for (const int value : there) back.send(value);
    back.close();
  });
  for (int i = 0; i < times(1000); ++i) {
    there.send(i);
    EXPECT_EQ(back.receive(), i);
  }
  int value = 0;
  EXPECT_EQ(back.receive_for(value, 1ms), channel_status::timeout);
  there.close();
  EXPECT_EQ(back.receive(), std::nullopt);
  echo.join();
}

TEST_P(Channel, MayBeDestroyedRightAfterItsLastUse) {
  run([] {
    for (int i = 0; i < times(3000); ++i) {
      auto values = std::make_unique<channel<int>>(static_cast<std::size_t>(i % 2));
      auto sender = spawn([&] { values->send(i); });
      EXPECT_EQ(values->receive(), i);
      sender.join();
      values.reset();
    }
  });
}

TEST_P(Channel, DestroysTheValuesLeftInIt) {
  auto token = std::make_shared<int>(1);
  {
    channel<std::shared_ptr<int>> values(unbounded);
    for (int i = 0; i < 10; ++i) values.send(token);
    values.receive();
    EXPECT_EQ(token.use_count(), 10);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Channel, PipelinesOfManyStagesCarryAll) {
  run([] {
    const std::size_t stages = static_cast<std::size_t>(fibers(100));
    std::vector<std::unique_ptr<channel<int>>> links;
    for (std::size_t i = 0; i <= stages; ++i) links.push_back(std::make_unique<channel<int>>(i % 3));
    task_group all;
    for (std::size_t i = 0; i < stages; ++i)
      all.spawn([from = links[i].get(), to = links[i + 1].get()] {
        for (const int value : *from) to->send(value + 1);
        to->close();
      });
    all.spawn([&] {
      for (int i = 0; i < 100; ++i) links[0]->send(i);
      links[0]->close();
    });
    int expected = static_cast<int>(stages);
    for (const int value : *links[stages]) EXPECT_EQ(value, expected++);
    all.wait();
    EXPECT_EQ(expected, static_cast<int>(stages) + 100);
  });
}

}  // namespace
