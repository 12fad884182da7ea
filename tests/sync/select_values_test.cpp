// Select with values that are no plain numbers: only movable, with a move that throws, or over-aligned.

#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>

#include <cstdint>
#include <memory>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class SelectValues : public WorkersTest {};
ULEXITE_TEST_WORKERS(SelectValues);

const auto must_not_run = [](auto&&...) { ADD_FAILURE() << "a case ran that was not chosen"; };

struct move_failed {};

// As many moves of it as `failures` says throw, and change nothing.
struct brittle {
  brittle(int initial, std::atomic<int>& failing) : value(initial), failures(&failing) {}
  brittle(brittle&& other) : value(other.value), failures(other.failures) {
    if (*failures > 0) {
      --*failures;
      throw move_failed();
    }
    other.value = -1;
  }
  brittle& operator=(brittle&& other) noexcept {
    value = std::exchange(other.value, -1);
    return *this;
  }

  int value;
  std::atomic<int>* failures;
};

class SelectBrittle : public WorkersTest {
 protected:
  std::atomic<int> failures_{0};
  int got_ = 0;
  // For a handler of on_receive; takes a reference, so that it moves nothing.
  auto keep() {
    return [this](std::optional<brittle>&& v) { got_ = v.value().value; };
  }
  // Before that, the other side may not have come.
  void try_until_a_move_fails(auto attempt) {
    for (bool failed = false; !failed; this_fiber::yield()) {
      failures_ = 1;
      try {
        EXPECT_EQ(attempt(), channel_status::would_block);
      } catch (const move_failed&) {
        failed = true;
      }
    }
  }
};
ULEXITE_TEST_WORKERS(SelectBrittle);

TEST_P(SelectValues, CanBeOnlyMovable) {
  run([] {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, unbounded}) {
      channel<std::unique_ptr<int>> values(capacity), never;
      auto sender = spawn([&] {
        for (int i = 0; i < 50; ++i) {
          auto value = std::make_unique<int>(i);
          select(on_send(values, std::move(value)), on_receive(never, must_not_run));
          EXPECT_FALSE(value) << "a case holds what is no variable";
        }
      });
      for (int i = 0; i < 50; ++i) {
        std::unique_ptr<int> got;
        select(on_receive(values, [&](std::optional<std::unique_ptr<int>> v) { got = std::move(*v); }));
        EXPECT_EQ(*got, i);
      }
      sender.join();
    }
  });
}

// No default constructor, no assignment.
struct constant {
  explicit constant(int initial) : value(initial) {}
  constant(constant&&) = default;
  constant& operator=(constant&&) = delete;
  const int value;
};

TEST_P(SelectValues, NeedNoAssignment) {
  run([] {
    channel<constant> values(1);
    select(on_send(values, constant(3)));
    select(on_receive(values, [](std::optional<constant> v) { EXPECT_EQ(v->value, 3); }));
    auto sender = spawn([&] { select(on_send(values, constant(4)), after(1h, must_not_run)); });
    select(on_receive(values, [](const auto& v) { EXPECT_EQ(v->value, 4); }), after(1h, must_not_run));
    sender.join();
    constant five(5);
    selector<constant> sends, receives;
    sends.add_send(values, five);
    receives.add_receive(values);
    sends.wait();
    EXPECT_EQ(receives.wait().value->value, 5);
    sender = spawn([&] {
      for (int i = 0; i < 10; ++i) values.send(constant(i));
      values.close();
    });
    int next = 0;
    for (const constant& each : values) EXPECT_EQ(each.value, next++);
    EXPECT_EQ(next, 10);
    sender.join();
  });
}

struct alignas(64) aligned {
  explicit aligned(int initial) : value(initial) { check(); }
  aligned(aligned&& other) noexcept : value(other.value) { check(); }
  aligned& operator=(aligned&& other) noexcept {
    value = other.value;
    return *this;
  }
  void check() const { EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this) % 64, 0u); }
  int value;
};

TEST_P(SelectValues, MayBeOverAligned) {
  run([] {
    channel<aligned> direct, buffered(3);
    auto sender = spawn([&] {
      for (int i = 0; i < 100; ++i) select(on_send(direct, aligned(i)), on_send(buffered, aligned(i)));
    });
    int sum = 0;
    const auto add = [&](const std::optional<aligned>& v) {
      v->check();
      sum += v->value;
    };
    for (int i = 0; i < 100; ++i) select(on_receive(direct, add), on_receive(buffered, add));
    EXPECT_EQ(sum, 4950);
    sender.join();
  });
}

// The sender has waited; the move that throws is made by the receiving select, which gets the exception.
TEST_P(SelectBrittle, AFailedReceiveLeavesTheValueWithItsSender) {
  run([&] {
    channel<brittle> values, never;
    auto sender = spawn([&] {
      brittle value(3, failures_);
      EXPECT_EQ(values.send_for(value, 1h), channel_status::ok);
      EXPECT_EQ(value.value, -1);
    });
    for (bool failed = false; !failed;) {
      failures_ = 1;
      try {
        EXPECT_EQ(select(on_receive(values, must_not_run), on_receive(never, must_not_run), otherwise()), 2u);
        this_fiber::yield();
      } catch (const move_failed&) {
        failed = true;
      }
    }
    select(on_receive(values, keep()), on_receive(never, must_not_run));
    EXPECT_EQ(got_, 3);
    sender.get();
  });
}

TEST_P(SelectBrittle, AFailedSendKeepsItsValue) {
  run([&] {
    channel<brittle> values, full(1);
    full.send(brittle(0, failures_));
    auto receiver = spawn([&] { EXPECT_EQ(values.receive()->value, 3); });
    brittle value(3, failures_);
    for (bool failed = false; !failed;) {
      failures_ = 1;
      try {
        EXPECT_EQ(select(on_send(values, value, must_not_run), on_send(full, value, must_not_run), otherwise()), 2u);
        this_fiber::yield();
      } catch (const move_failed&) {
        failed = true;
      }
    }
    EXPECT_EQ(value.value, 3);
    EXPECT_EQ(select(on_send(values, value), on_send(full, value, must_not_run)), 0u) << "the receiver waits again";
    receiver.get();
  });
}

// The select has waited; its partner makes the move, gets the exception, and the select goes on waiting.
TEST_P(SelectBrittle, ASelectGoesOnWhenItsSenderFails) {
  run([&] {
    channel<brittle> values, never;
    auto receiver = spawn([&] { EXPECT_EQ(select(on_receive(never, must_not_run), on_receive(values, keep())), 1u); });
    brittle value(4, failures_);
    try_until_a_move_fails([&] { return values.try_send(value); });
    EXPECT_EQ(value.value, 4);
    EXPECT_EQ(values.send_for(value, 1h), channel_status::ok);
    receiver.get();
    EXPECT_EQ(got_, 4);
  });
}

TEST_P(SelectBrittle, ASelectGoesOnWhenItsReceiverFails) {
  run([&] {
    channel<brittle> values, never;
    auto sender = spawn([&] {
      brittle value(5, failures_);
      EXPECT_EQ(select(on_send(never, value, must_not_run), on_send(values, value)), 1u);
      EXPECT_EQ(value.value, -1);
    });
    brittle into(0, failures_);
    try_until_a_move_fails([&] { return values.try_receive(into); });
    EXPECT_EQ(values.receive_for(into, 1h), channel_status::ok);
    EXPECT_EQ(into.value, 5);
    sender.get();
  });
}

TEST_P(SelectBrittle, ASelectorGoesOnToo) {
  run([&] {
    channel<brittle> values, never;
    auto receiver = spawn([&] {
      selector<brittle> cases;
      cases.add_receive(never);
      cases.add_receive(values);
      auto got = cases.wait();
      EXPECT_EQ(got.index, 1u);
      EXPECT_EQ(got.value->value, 4);
    });
    brittle value(4, failures_);
    try_until_a_move_fails([&] { return values.try_send(value); });
    EXPECT_EQ(values.send_for(value, 1h), channel_status::ok);
    receiver.get();
  });
}

// A receive from a full channel makes room for a waiting sender. If that one's move throws, there, the receive is not
// disturbed, and the sender tries again by itself.
TEST_P(SelectBrittle, ASenderThatCannotFollowTriesAgain) {
  run([&] {
    channel<brittle> values(1), never;
    values.send(brittle(1, failures_));
    std::atomic<int> of_sender{0};
    auto sender = spawn([&] {
      brittle value(2, of_sender);
      while (value.value != -1) try {
          select(on_send(values, value), on_send(never, value, must_not_run));
        } catch (const move_failed&) {  // it had not yet waited
        }
    });
    wait_until_others_wait();
    of_sender = 1;
    EXPECT_EQ(values.receive()->value, 1);
    EXPECT_EQ(values.receive()->value, 2);
    sender.get();
  });
}

// And if it gives up, the room is for the next one.
TEST_P(SelectBrittle, ASenderThatCannotFollowKeepsNoRoom) {
  run([&] {
    channel<brittle> values(1), never;
    values.send(brittle(1, failures_));
    std::atomic<int> endless{0};
    auto failing = spawn([&] {
      brittle value(2, endless);
      try {
        select(on_send(values, value, must_not_run), on_send(never, value, must_not_run));
      } catch (const move_failed&) {
      } catch (const channel_closed&) {  // it came last
      }
    });
    wait_until_others_wait();
    auto next = spawn([&] { values.send(brittle(3, failures_)); });
    wait_until_others_wait();
    endless = 1000;
    EXPECT_EQ(values.receive()->value, 1);
    next.join();
    values.close();
    EXPECT_EQ(values.receive()->value, 3);
    failing.get();
  });
}

}  // namespace
