// Selects that meet each other, many at the same time: if a select has done a case, its partner has done it too.

#include "support/runtime_fixture.hpp"

#include <ulexite/base/random.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/select.hpp>

#include <algorithm>
#include <array>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class SelectCrossing : public WorkersTest {};
ULEXITE_TEST_WORKERS(SelectCrossing);

struct exchanged {
  std::size_t which = 0;
  int value = -1;
};

// Cases 0 and 1 send, on a and on b; 2 and 3 receive from them.
std::vector<exchanged> face(channel<int>& a, channel<int>& b, int rounds, int first) {
  std::vector<exchanged> done;
  for (int i = 0; i < rounds; ++i) {
    exchanged one{.value = first + i};
    const auto keep = [&](std::optional<int> v) { one.value = v.value(); };
    one.which = select(on_send(a, first + i), on_send(b, first + i), on_receive(a, keep), on_receive(b, keep));
    done.push_back(one);
  }
  return done;
}

void expect_opposite(const std::vector<exchanged>& left, const std::vector<exchanged>& right) {
  ASSERT_EQ(left.size(), right.size());
  std::array<int, 4> chosen{};
  for (std::size_t i = 0; i < left.size(); ++i) {
    ASSERT_EQ(left[i].which ^ 2u, right[i].which) << "in round " << i;
    ASSERT_EQ(left[i].value, right[i].value) << "in round " << i;
    ++chosen[left[i].which];
  }
  for (const int count : chosen) EXPECT_GT(count, 0) << "each of the four meetings happens";
}

TEST_P(SelectCrossing, TwoThatFaceEachOtherOnTwoChannelsAgree) {
  run([] {
    const int rounds = times(5000);
    channel<int> a, b;
    auto left = spawn([&] { return face(a, b, rounds, 0); });
    auto right = spawn([&] { return face(b, a, rounds, 1'000'000); });
    std::vector<exchanged> of_right = right.get();
    for (exchanged& each : of_right) each.which ^= 1u;  // it calls the channels the other way round
    expect_opposite(left.get(), of_right);
  });
}

TEST_P(SelectCrossing, AFiberAndAThreadThatFaceEachOtherAgree) {
  const int rounds = times(2000);
  channel<int> a, b;
  auto left = rt().spawn([&] { return face(a, b, rounds, 0); });
  const std::vector<exchanged> right = face(a, b, rounds, 1'000'000);
  expect_opposite(left.get(), right);
}

TEST_F(RuntimeTest, SelectConnectsPlainThreadsWithoutARuntime) {
  const int rounds = times(2000);
  channel<int> a, b;
  std::vector<exchanged> left;
  std::thread other([&] { left = face(a, b, rounds, 0); });
  const std::vector<exchanged> right = face(a, b, rounds, 1'000'000);
  other.join();
  expect_opposite(left, right);
  EXPECT_EQ(select(on_send(a, 1), after(1ms)), 1u);
  EXPECT_EQ(select(on_send(a, 1), otherwise()), 1u);
  a.close();
  EXPECT_THROW(select(on_send(a, 1)), channel_closed);
}

// A ring in which each wants to pass its value on and to receive its neighbour's, in whichever order.
TEST_P(SelectCrossing, ARingOfSelectsTurns) {
  run([] {
    constexpr std::size_t size = 7;
    std::array<channel<std::size_t>, size> links;
    std::vector<join_handle<>> ring;
    for (std::size_t i = 0; i < size; ++i)
      ring.push_back(spawn([&, i] {
        for (int turn = 0; turn < times(500); ++turn) {
          bool sent = false, received = false;
          while (!sent || !received)
            select(when(!sent, on_send(links[i], i, [&] { sent = true; })),
                   when(!received, on_receive(links[(i + size - 1) % size], [&](std::optional<std::size_t> v) {
                     EXPECT_EQ(v, (i + size - 1) % size);
                     received = true;
                   })));
        }
      }));
    for (auto& each : ring) each.get();
  });
}

// Producers and consumers that select over the same channels, some with time-outs and without waiting.
class exchange {
 public:
  static constexpr int each = 600;

  explicit exchange(std::size_t producers) : seen_(producers * static_cast<std::size_t>(count())) {}
  static int count() { return times(each); }

  void produce(std::size_t who) {
    detail::random random(who + 1);
    for (int i = 0; i < count();) {
      std::size_t value = who * static_cast<std::size_t>(count()) + static_cast<std::size_t>(i);
      const std::size_t which = select(on_send(a_, value), on_send(b_, value), on_send(c_, std::size_t{value}),
                                       when(random.below(4) == 0, after(std::chrono::microseconds(random.below(50)))),
                                       when(random.below(8) == 0, otherwise()));
      if (which < 3) ++i;
    }
  }
  void consume(std::uint64_t seed) {
    detail::random random(seed);
    std::array<bool, 3> open{true, true, true};
    const auto note = [&](std::size_t from) {
      return [this, &open, from](std::optional<std::size_t> value) {
        if (!value) open[from] = false;
        if (value) ++seen_[*value];
      };
    };
    while (open[0] || open[1] || open[2])
      select(when(open[0], on_receive(a_, note(0))), when(open[1], on_receive(b_, note(1))),
             when(open[2], on_receive(c_, note(2))),
             when(random.below(4) == 0, after(std::chrono::microseconds(random.below(50)))),
             when(random.below(8) == 0, otherwise()));
  }
  void close() {
    a_.close();
    b_.close();
    c_.close();
  }
  void expect_each_once() const {
    EXPECT_TRUE(std::ranges::all_of(seen_, [](const auto& count) { return count == 1; }));
  }

 private:
  channel<std::size_t> a_, b_{1}, c_{7};
  std::vector<std::atomic<int>> seen_;
};

TEST_P(SelectCrossing, ManyFibersAndThreadsExchangeEachValueOnce) {
  exchange all(8);
  std::vector<join_handle<>> producers, consumers;
  std::vector<std::thread> producing, consuming;
  for (std::size_t i = 0; i < 6; ++i) producers.push_back(rt().spawn([&, i] { all.produce(i); }));
  for (std::size_t i = 6; i < 8; ++i) producing.emplace_back([&, i] { all.produce(i); });
  for (std::uint64_t i = 0; i < 5; ++i) consumers.push_back(rt().spawn([&, i] { all.consume(100 + i); }));
  for (std::uint64_t i = 0; i < 2; ++i) consuming.emplace_back([&, i] { all.consume(200 + i); });
  for (auto& handle : producers) handle.get();
  for (auto& thread : producing) thread.join();
  all.close();
  for (auto& handle : consumers) handle.get();
  for (auto& thread : consuming) thread.join();
  all.expect_each_once();
}

// Selects and plain operations on the same channel.
TEST_P(SelectCrossing, ASelectMeetsPlainOperations) {
  run([] {
    const int rounds = times(3000);
    channel<int> values, never;
    auto sender = spawn([&] {
      for (int i = 0; i < rounds; ++i) values.send(i);
    });
    for (int i = 0; i < rounds; ++i)
      select(on_receive(never, [](auto) {}), on_receive(values, [&](auto v) { EXPECT_EQ(v, i); }));
    sender.join();
    auto receiver = spawn([&] {
      for (int i = 0; i < rounds; ++i) EXPECT_EQ(values.receive(), i);
    });
    for (int i = 0; i < rounds; ++i) select(on_receive(never, [](auto) {}), on_send(values, i));
    receiver.join();
  });
}

}  // namespace
