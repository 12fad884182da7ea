// Channels whose users are coroutines, fibers and plain threads at the same time: the tests of channels, a second time.

#include "ways.hpp"

#include <deque>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoChannel : public WaysTest {};
ULEXITE_TEST_WAYS(CoChannel);

TEST_P(CoChannel, RendezvousHandsEachValueOver) {
  channel<int> values;
  std::atomic<int> sent{0};
  auto sends = start([&]() -> task<> {
    for (int i = 0; i < 5; ++i) {
      co_await co_send(values, i);
      ++sent;
    }
  });
  auto receives = start([&]() -> task<> {
    for (int i = 0; i < 5; ++i) {
      blocking([&] { wait_until([&] { return sent == i; }); });
      EXPECT_LE(sent, i) << "a send returned before its receive";
      EXPECT_EQ(co_await co_receive(values), i);
    }
  });
  sends.get();
  receives.get();
}

TEST_P(CoChannel, ClosedDrainsThenGivesNothing) {
  channel<int> values(4);
  values.send(1);
  values.send(2);
  values.close();
  finish([&]() -> task<> {
    int value = 3;
    bool refused = false;
    try {
      co_await co_send(values, 3);
    } catch (const channel_closed&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    EXPECT_EQ(co_await co_send_for(values, value, 1h), channel_status::closed);
    EXPECT_EQ(value, 3);
    EXPECT_EQ(co_await co_receive(values), 1);
    EXPECT_EQ(co_await co_receive_for(values, value, 1h), channel_status::ok);
    EXPECT_EQ(value, 2);
    EXPECT_EQ(co_await co_receive(values), std::nullopt);
    EXPECT_EQ(co_await co_receive_for(values, value, 1h), channel_status::closed);
    EXPECT_EQ(value, 2);
  });
}

TEST_P(CoChannel, CloseWakesEverybody) {
  channel<int> empty, full(1);
  full.send(0);
  std::atomic<int> begun{0}, refused{0}, nothing{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(start([&, i]() -> task<> {
      ++begun;
      int value = i;
      if (i % 2 == 0) {
        try {
          co_await co_send(full, i);
        } catch (const channel_closed&) {
          ++refused;
        }
      } else if (co_await co_send_for(full, value, 1h) == channel_status::closed) {
        EXPECT_EQ(value, i);
        ++refused;
      }
    }));
    all.push_back(start([&]() -> task<> {
      ++begun;
      EXPECT_EQ(co_await co_receive(empty), std::nullopt);
      ++nothing;
    }));
  }
  wait_until([&] { return begun == 40; });
  wait_until_all_wait(rt());
  full.close();
  empty.close();
  for (auto& each : all) each.get();
  EXPECT_EQ(refused, 20);
  EXPECT_EQ(nothing, 20);
  EXPECT_EQ(full.receive(), 0);
}

TEST_P(CoChannel, CarriesWhatCanOnlyBeMoved) {
  channel<std::unique_ptr<int>> values;
  auto sends = start([&]() -> task<> {
    co_await co_send(values, std::make_unique<int>(1));
    auto two = std::make_unique<int>(2);
    EXPECT_EQ(co_await co_send_for(values, two, 1h), channel_status::ok);
    EXPECT_FALSE(two);
  });
  finish([&]() -> task<> {
    const auto one = co_await co_receive(values);
    EXPECT_EQ(**one, 1);
    std::unique_ptr<int> into;
    EXPECT_EQ(co_await co_receive_until(values, into, ulexite::steady_clock::now() + 1h), channel_status::ok);
    EXPECT_EQ(*into, 2);
  });
  sends.get();
}

TEST_P(CoChannel, KeepsTheValueOfASendThatFails) {
  channel<std::unique_ptr<int>> values;
  finish([&]() -> task<> {
    auto kept = std::make_unique<int>(5);
    EXPECT_EQ(co_await co_send_for(values, kept, 1ms), channel_status::timeout);
    EXPECT_EQ(co_await co_send_until(values, kept, ulexite::steady_clock::now()), channel_status::timeout);
    EXPECT_EQ(co_await co_send_for(values, kept, -1h), channel_status::timeout);
    {
      const deadline_scope limit(100us);
      try {
        (void)co_await co_send_for(values, kept, 1h);
        ADD_FAILURE();
      } catch (const deadline_exceeded&) {
      }
    }
    auto closer = spawn([&] { values.close(); });
    EXPECT_EQ(co_await co_send_for(values, kept, 1h), channel_status::closed);
    EXPECT_TRUE(kept && *kept == 5);
    closer.join();
  });
}

TEST_P(CoChannel, TimesOutNoEarlierThanAsked) {
  channel<int> values;
  finish([&]() -> task<> {
    int value = 0;
    const auto begun = ulexite::steady_clock::now();
    EXPECT_EQ(co_await co_receive_for(values, value, 2ms), channel_status::timeout);
    EXPECT_GE(ulexite::steady_clock::now() - begun, 2ms);
    EXPECT_EQ(co_await co_receive_until(values, value, ulexite::steady_clock::time_point(-1ns)),
              channel_status::timeout);
    EXPECT_EQ(co_await co_receive_until(values, value, ulexite::steady_clock::now() - 1h), channel_status::timeout);
    values.close();
    EXPECT_EQ(co_await co_receive_for(values, value, 0s), channel_status::closed);
  });
}

TEST_P(CoChannel, ServesFirstInFirstOut) {
  channel<int> values;
  std::vector<join_handle<>> all;
  for (int i = 0; i < 6; ++i) all.push_back(start_until_it_waits([&, i]() -> task<> { co_await co_send(values, i); }));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(values.receive(), i);
  std::array<int, 6> got{};
  for (std::size_t i = 0; i < got.size(); ++i)
    all.push_back(start_until_it_waits([&, i]() -> task<> { got[i] = *co_await co_receive(values); }));
  for (int i = 0; i < 6; ++i) values.send(i);
  for (auto& each : all) each.get();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
}

// Values of one sender reach each receiver in order; every value arrives once.
TEST_P(CoChannel, CoroutinesFibersAndThreadsExchangeEachValueOnce) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{16}, unbounded}) {
    constexpr int senders = 5;
    const int each = times(600);
    channel<std::pair<int, int>> values(capacity);
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(senders * each));
    const auto send_all = [&](int who) -> task<> {
      for (int i = 0; i < each; ++i) co_await co_send(values, {who, i});
    };
    const auto receive_all = [&]() -> task<> {
      std::array<int, senders> last{};
      last.fill(-1);
      while (const auto value = co_await co_receive(values)) {
        const auto [who, number] = *value;
        EXPECT_GT(number, std::exchange(last[static_cast<std::size_t>(who)], number));
        ++seen[static_cast<std::size_t>(who * each + number)];
      }
    };
    std::vector<join_handle<>> sending, receiving;
    for (int i = 0; i < 4; ++i) {
      sending.push_back(start([&, i] { return send_all(i); }));
      receiving.push_back(start(receive_all));
    }
    std::thread sends([&] { await(send_all(4)); }), receives([&] { await(receive_all()); });
    for (auto& one : sending) one.get();
    sends.join();
    values.close();
    for (auto& one : receiving) one.get();
    receives.join();
    for (const auto& count : seen) EXPECT_EQ(count, 1);
  }
}

TEST_P(CoChannel, MayBeDestroyedRightAfterItsLastUse) {
  finish([&]() -> task<> {
    for (int i = 0; i < times(1000); ++i) {
      auto values = std::make_unique<channel<int>>(static_cast<std::size_t>(i % 2));
      auto sends =
          spawn([](channel<int>& to, int value) -> task<> { co_await co_send(to, value); }, std::ref(*values), i);
      EXPECT_EQ(co_await co_receive(*values), i);
      co_await co_join(sends);
      values.reset();
    }
  });
}

TEST_P(CoChannel, PipelinesOfManyStagesCarryAll) {
  const std::size_t stages = static_cast<std::size_t>(fibers(100));
  std::deque<channel<int>> links;
  for (std::size_t i = 0; i <= stages; ++i) links.emplace_back(i % 3);
  std::vector<join_handle<>> all;
  for (std::size_t i = 0; i < stages; ++i)
    all.push_back(start([&from = links[i], &to = links[i + 1]]() -> task<> {
      while (const auto value = co_await co_receive(from)) co_await co_send(to, *value + 1);
      to.close();
    }));
  all.push_back(start([&]() -> task<> {
    for (int i = 0; i < 100; ++i) co_await co_send(links[0], i);
    links[0].close();
  }));
  int expected = static_cast<int>(stages);
  for (const int value : links[stages]) EXPECT_EQ(value, expected++);
  for (auto& each : all) each.get();
  EXPECT_EQ(expected, static_cast<int>(stages) + 100);
}

// A value whose move to its receiver throws is lost to that one only, who gets the exception.
struct fragile {
  static inline std::atomic<int> until{0};
  int number;
  explicit fragile(int n) noexcept : number(n) {}
  fragile(fragile&& other) : number(other.number) {
    if (until > 0 && --until == 0) throw std::runtime_error("move");
  }
  fragile& operator=(fragile&& other) {
    number = other.number;
    return *this;
  }
  ~fragile() = default;
};

TEST_P(CoChannel, AMoveThatThrowsEndsOneOperation) {
  for (const std::size_t capacity : {0u, 1u}) {
    for (int moves = 0; moves < 7; ++moves) {
      channel<fragile> values(capacity);
      std::atomic<int> failures{0};
      fragile::until = 0;
      auto receives = start_until_it_waits([&]() -> task<> {
        try {
          const auto got = co_await co_receive(values);
          if (got) EXPECT_EQ(got->number, 4);
        } catch (const std::runtime_error&) {
          ++failures;
        }
      });
      fragile::until = moves;
      auto sends = start([&]() -> task<> {
        try {
          co_await co_send(values, fragile(4));
        } catch (const std::runtime_error&) {
          ++failures;
        }
      });
      sends.get();
      values.close();
      receives.get();
      EXPECT_LE(failures, 1);
    }
  }
  fragile::until = 0;
}

TEST_P(CoChannel, TheLastHandleOfOneSideClosesTheOther) {
  auto [to, from] = make_channel<int>(2);
  auto receives = start([mine = std::move(from)]() -> task<int> {
    int total = 0;
    while (const auto value = co_await co_receive(mine)) total += *value;
    co_return total;
  });
  std::vector<join_handle<>> all;
  for (int i = 0; i < 3; ++i)
    all.push_back(start([mine = to]() -> task<> {
      for (int k = 0; k < 100; ++k) co_await co_send(mine, 1);
    }));
  to = {};
  for (auto& each : all) each.get();
  all.clear();
  EXPECT_EQ(receives.get(), 300);
  EXPECT_THROW(finish([mine = sender<int>()]() -> task<> { co_await co_send(mine, 1); }), usage_error);
}

TEST_P(CoChannel, ABroadcastGivesEachReceiverEachValue) {
  broadcast<int> room(1000);
  std::vector<join_handle<int>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(start([mine = room.subscribe()]() mutable -> task<int> {
      int total = 0;
      while (const auto value = co_await co_receive(mine)) total += *value;
      co_return total;
    }));
  for (int i = 1; i <= 100; ++i) room.send(i);
  room.close();
  for (auto& each : all) EXPECT_EQ(each.get(), 5050);
}

}  // namespace
