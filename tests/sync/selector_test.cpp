#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>

#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Selector : public WorkersTest {};
ULEXITE_TEST_WORKERS(Selector);

TEST_P(Selector, ReceivesAndSends) {
  run([] {
    channel<int> a(1), b(1), never;
    int value = 4;
    selector<int> cases;
    EXPECT_EQ(cases.size(), 0u);
    EXPECT_EQ(cases.add_receive(never), 0u);
    EXPECT_EQ(cases.add_receive(a), 1u);
    EXPECT_EQ(cases.add_send(b, value), 2u);
    EXPECT_EQ(cases.size(), 3u);
    auto first = cases.wait();
    EXPECT_EQ(first.index, 2u);
    EXPECT_FALSE(first.value);
    EXPECT_EQ(b.size(), 1u);
    for (const bool before : {true, false}) {
      auto sender = spawn([&] {
        if (!before) wait_until_others_wait();
        a.send(7);
      });
      if (before) sender.join();
      auto got = cases.wait();
      EXPECT_EQ(got.index, 1u);
      EXPECT_EQ(got.value, 7);
      sender.join();
    }
    auto receiver = spawn([&] {
      wait_until_others_wait();
      EXPECT_EQ(b.receive(), 4);
    });
    value = 5;
    EXPECT_EQ(cases.wait().index, 2u);
    receiver.join();
    EXPECT_EQ(b.receive(), 5);
  });
}

// Its move throws after `moves` moves: on the way into the channel, into the selector or out of it.
struct reluctant {
  reluctant(int n, int moves) : number(n), left(moves) {}
  reluctant(reluctant&& other) : number(other.number), left(other.left) {
    if (left-- == 0) throw std::runtime_error("no move");
  }
  reluctant& operator=(reluctant&&) = delete;
  int number, left;
};

TEST_P(Selector, AMoveThatThrowsLosesItsValueOnly) {
  run([] {
    for (int moves = 0; moves < 8; ++moves) {
      channel<reluctant> from(2);
      try {
        from.send(reluctant(1, moves));
      } catch (const std::runtime_error&) {
        continue;
      }
      from.close();
      selector<reluctant> cases;
      cases.add_receive(from);
      try {
        EXPECT_EQ(cases.wait().value->number, 1);
      } catch (const std::runtime_error&) {
      }
      std::optional<int> second;
      try {
        if (auto got = cases.wait(); got.value) second = got.value->number;
      } catch (const std::runtime_error&) {
        continue;  // it was still in the channel
      }
      EXPECT_EQ(second, std::nullopt) << moves;
    }
  });
}

TEST_P(Selector, SwitchesCasesOffAndOn) {
  run([] {
    channel<int> a(1), b(1);
    selector<int> cases;
    EXPECT_THROW(cases.wait(), usage_error);
    EXPECT_THROW(cases.try_wait(), usage_error);
    EXPECT_THROW(cases.enable(0), usage_error);
    cases.add_receive(a);
    cases.add_receive(b);
    a.send(1);
    cases.disable(0);
    EXPECT_EQ(cases.try_wait(), std::nullopt);
    b.send(2);
    EXPECT_EQ(cases.wait().index, 1u) << "disabled cases are counted";
    cases.disable(1);
    EXPECT_THROW(cases.wait_for(1h), usage_error);
    cases.enable(0);
    EXPECT_EQ(cases.wait().value, 1);
    EXPECT_THROW(cases.disable(2), usage_error);
  });
}

TEST_P(Selector, WaitsNoLongerThanAsked) {
  run([] {
    channel<int> values;
    int value = 3;
    selector<int> cases;
    cases.add_receive(values);
    cases.add_send(values, value);
    const auto start = ulexite::steady_clock::now();
    EXPECT_EQ(cases.try_wait(), std::nullopt) << "it never meets itself";
    EXPECT_EQ(cases.wait_for(2ms), std::nullopt);
    EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    EXPECT_EQ(cases.wait_for(-1h), std::nullopt);
    EXPECT_EQ(cases.wait_until(ulexite::steady_clock::now() - 1h), std::nullopt);
    EXPECT_EQ(value, 3);
    auto receiver = spawn([&] { EXPECT_EQ(values.receive(), 3); });
    const auto sent = cases.wait_for(1h);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->index, 1u);
    receiver.join();
    const deadline_scope scope(1ms);
    EXPECT_EQ(cases.wait_for(0s), std::nullopt);
    EXPECT_THROW(cases.wait(), deadline_exceeded);
  });
}

TEST_P(Selector, TellsOfClosedChannels) {
  run([] {
    for (const bool before : {true, false}) {
      channel<std::unique_ptr<int>> in, out;
      auto kept = std::make_unique<int>(1);
      selector<std::unique_ptr<int>> cases;
      cases.add_receive(in);
      cases.add_send(out, kept);
      auto closer = spawn([&] {
        if (!before) wait_until_others_wait();
        in.close();
      });
      if (before) closer.join();
      for (int i = 0; i < 3; ++i) {
        const auto ended = cases.wait();
        EXPECT_EQ(ended.index, 0u);
        EXPECT_FALSE(ended.value);
      }
      cases.disable(0);
      auto second = spawn([&] {
        if (!before) wait_until_others_wait();
        out.close();
      });
      if (before) second.join();
      EXPECT_THROW(cases.wait(), channel_closed);
      EXPECT_THROW(cases.try_wait(), channel_closed);
      ASSERT_TRUE(kept);
      EXPECT_EQ(*kept, 1);
      closer.join();
      second.join();
    }
  });
}

// Bounds as in the test of select's fairness.
TEST_P(Selector, ChoosesFairlyOrInOrder) {
  run([] {
    const int rounds = times(30000);
    constexpr std::size_t count = 3;
    std::deque<channel<int>> sources;
    selector<int> any, first(in_order);
    for (std::size_t i = 0; i < count; ++i) {
      sources.emplace_back(1).send(1);
      any.add_receive(sources.back());
      first.add_receive(sources.back());
    }
    std::array<int, count> chosen{};
    for (int i = 0; i < rounds; ++i) {
      const std::size_t which = any.wait().index;
      ++chosen[which];
      sources[which].send(1);
    }
    for (const int each : chosen) EXPECT_LT(std::abs(each - rounds / 3.0), 4 * std::sqrt(rounds));
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(first.wait().index, i);
  });
}

// Also where a channel's lock is biased to the worker that has used it until now, and this fiber goes on elsewhere.
TEST_P(Selector, KeepsTheOrderWhereverTheChannelsWereUsed) {
  run([] {
    for (int round = 0; round < 20; ++round) {
      std::deque<channel<int>> sources;
      selector<int> first(in_order);
      for (std::size_t i = 0; i < 4; ++i) {
        first.add_receive(sources.emplace_back(1));
        spawn([&values = sources.back()] {
          for (int n = 0; n < 3000; ++n) {
            values.send(n);
            static_cast<void>(values.receive());
          }
          values.send(1);
        }).join();
        this_fiber::yield();
      }
      for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(first.wait().index, i);
    }
  });
}

// One channel in several cases, in both directions: a sent value is received again, and no two cases do the same.
TEST_P(Selector, MayHaveAChannelSeveralTimes) {
  run([] {
    channel<int> values(1);
    int one = 1, two = 2;
    selector<int> cases;
    cases.add_receive(values);
    cases.add_send(values, one);
    cases.add_receive(values);
    cases.add_send(values, two);
    std::array<bool, 4> seen{};
    for (int i = 0; i < 200; ++i) {
      const auto sent = cases.wait();
      ASSERT_EQ(sent.index % 2, 1u);
      const auto received = cases.wait();
      ASSERT_EQ(received.index % 2, 0u);
      EXPECT_EQ(received.value, sent.index == 1 ? 1 : 2);
      seen[sent.index] = seen[received.index] = true;
    }
    for (const bool each : seen) EXPECT_TRUE(each);
  });
}

TEST_P(Selector, ACancelledWaitTakesAndGivesNothing) {
  run([] {
    channel<std::unique_ptr<int>> in(1), out;
    auto kept = std::make_unique<int>(1);
    selector<std::unique_ptr<int>> cases;
    cases.add_receive(in);
    cases.add_send(out, kept);
    std::atomic<bool> ready{false};
    auto fiber = spawn([&] {
      ready = true;
      cases.wait();
    });
    wait_until([&] { return ready.load(); });
    wait_until_others_wait();
    fiber.request_stop();
    EXPECT_THROW(fiber.get(), operation_cancelled);
    ASSERT_TRUE(kept);
    in.send(std::make_unique<int>(2));
    const auto got = cases.wait();
    EXPECT_EQ(got.index, 0u);
    EXPECT_EQ(**got.value, 2) << "it can be used again, by another";
  });
}

// A fan-in of many channels; their number is known only at run time. Used on a fiber and on a plain thread.
void fan_in(runtime& rt, std::size_t count, bool on_a_fiber) {
  const int each = times(300);
  std::deque<channel<std::pair<std::size_t, int>>> sources;
  for (std::size_t i = 0; i < count; ++i) sources.emplace_back(i % 3);
  std::vector<join_handle<>> senders;
  for (std::size_t i = 0; i < count; ++i)
    senders.push_back(rt.spawn([&, i] {
      for (int k = 0; k < each; ++k) sources[i].send({i, k});
      sources[i].close();
    }));
  const auto collect = [&] {
    selector<std::pair<std::size_t, int>> cases;
    for (auto& source : sources) cases.add_receive(source);
    std::vector<int> next(count, 0);
    for (std::size_t open = count; open > 0;) {
      const auto got = cases.wait();
      if (got.value) {
        EXPECT_EQ(got.value->first, got.index);
        EXPECT_EQ(got.value->second, next[got.index]++);
      } else {
        cases.disable(got.index);
        --open;
      }
    }
    for (const int number : next) EXPECT_EQ(number, each);
  };
  on_a_fiber ? rt.spawn(collect).get() : collect();
  for (auto& sender : senders) sender.get();
}

TEST_P(Selector, CollectsFromManyChannels) {
  fan_in(rt(), 30, true);
  fan_in(rt(), 9, false);
}

// Selectors that face each other, each with as many ways to meet.
TEST_P(Selector, ManyFaceEachOther) {
  run([] {
    const int each = times(400);
    std::deque<channel<int>> links(4);
    std::atomic<int> sent{0}, received{0};
    std::vector<join_handle<>> all;
    for (int who = 0; who < 6; ++who)
      all.push_back(spawn([&] {
        int value = 1;
        selector<int> cases;
        for (auto& link : links) {
          cases.add_send(link, value);
          cases.add_receive(link);
        }
        for (int i = 0; i < each || sent == 0; ++i) {  // the first ones may be alone for long
          // The last one has no partner at the end.
          const auto done = cases.wait_for(20ms);
          if (done) ++(done->index % 2 == 0 ? sent : received);
        }
      }));
    for (auto& fiber : all) fiber.get();
    EXPECT_EQ(sent, received);
  });
}

}  // namespace
