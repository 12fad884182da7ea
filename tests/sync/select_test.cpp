#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/select.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Select : public WorkersTest {};
ULEXITE_TEST_WORKERS(Select);

const auto must_not_run = [](auto&&...) { ADD_FAILURE() << "a case ran that was not chosen"; };

// Has `event` happen before it returns or while the caller waits.
template <class F>
[[nodiscard]] join_handle<> cause(bool before, F event) {
  auto fiber = spawn([before, event] {
    if (!before) wait_until_others_wait();
    event();
  });
  if (before) fiber.join();
  return fiber;
}

TEST_P(Select, ReceivesWhatIsThereOrComes) {
  run([] {
    for (const bool before : {true, false}) {
      channel<int> never, values(1);
      auto sender = cause(before, [&] { values.send(7); });
      int got = 0;
      EXPECT_EQ(select(on_receive(never, must_not_run), on_receive(values, [&](std::optional<int> v) { got = *v; })),
                1u);
      EXPECT_EQ(got, 7);
      EXPECT_EQ(values.size(), 0u);
      sender.join();
    }
  });
}

TEST_P(Select, SendsOnceThereIsRoom) {
  run([] {
    for (const bool before : {true, false}) {
      channel<int> full(1), values(1);
      full.send(0);
      values.send(1);
      auto receiver = cause(before, [&] { EXPECT_EQ(values.receive(), 1); });
      bool sent = false;
      EXPECT_EQ(select(on_send(full, 2, must_not_run), on_send(values, 3, [&] { sent = true; })), 1u);
      EXPECT_TRUE(sent);
      EXPECT_EQ(values.receive(), 3);
      EXPECT_EQ(full.receive(), 0);
      receiver.join();
    }
  });
}

TEST_P(Select, MeetsAPartnerWithoutABuffer) {
  run([] {
    for (const bool before : {true, false}) {
      channel<int> there, back;
      auto echo = spawn([&] {
        if (!before) wait_until_others_wait();
        back.send(*there.receive() + 1);
      });
      if (before) wait_until_others_wait();
      EXPECT_EQ(select(on_receive(back, must_not_run), on_send(there, 4)), 1u);
      EXPECT_EQ(select(on_send(there, 9, must_not_run), on_receive(back, [](auto v) { EXPECT_EQ(v, 5); })), 1u);
      echo.join();
    }
  });
}

TEST_P(Select, MovesFromAVariableOnlyIfItIsSent) {
  run([] {
    channel<std::unique_ptr<int>> full, values(1);
    auto one = std::make_unique<int>(1), two = std::make_unique<int>(2);
    EXPECT_EQ(select(on_send(full, one), on_send(values, two)), 1u);
    EXPECT_TRUE(one);
    EXPECT_FALSE(two);
    EXPECT_EQ(select(on_send(full, one), on_send(values, one), otherwise()), 2u);
    EXPECT_EQ(select(on_send(full, one), on_send(values, one), after(1ms)), 2u) << "and it has waited";
    EXPECT_EQ(select(when(false, on_send(values, one)), otherwise()), 1u);
    ASSERT_TRUE(one);
    EXPECT_EQ(*one, 1);
    EXPECT_EQ(**values.receive(), 2);
  });
}

TEST_P(Select, DestroysATemporaryThatIsNotSent) {
  run([] {
    auto token = std::make_shared<int>(1);
    channel<std::shared_ptr<int>> full, values(1);
    EXPECT_EQ(select(on_send(full, std::shared_ptr(token)), otherwise()), 1u);
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_EQ(select(on_send(full, std::shared_ptr(token)), after(1ms)), 1u);
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_EQ(select(on_send(values, std::shared_ptr(token))), 0u);
    EXPECT_EQ(token.use_count(), 2);
  });
}

TEST_P(Select, CopiesAConstantAndConvertsOthers) {
  run([] {
    channel<std::string> values(3);
    const std::string constant = "constant";
    std::string_view view = "view";
    select(on_send(values, constant));
    select(on_send(values, "literal"));
    select(on_send(values, std::string(view)));
    EXPECT_EQ(values.receive(), "constant");
    EXPECT_EQ(values.receive(), "literal");
    EXPECT_EQ(values.receive(), "view");
    EXPECT_EQ(constant, "constant");
  });
}

TEST_P(Select, ReceivesNothingFromAClosedChannel) {
  run([] {
    for (const bool before : {true, false}) {
      channel<int> never, values(2);
      values.send(1);
      auto closer = cause(before, [&] { values.close(); });
      EXPECT_EQ(select(on_receive(values, [](auto v) { EXPECT_EQ(v, 1); }), on_receive(never, must_not_run)), 0u);
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(select(on_receive(never, must_not_run), on_receive(values, [](auto v) { EXPECT_FALSE(v); })), 1u);
      closer.join();
    }
  });
}

TEST_P(Select, ThrowsWhenItWouldSendToAClosedChannel) {
  run([] {
    for (const bool before : {true, false}) {
      channel<std::unique_ptr<int>> values;
      auto kept = std::make_unique<int>(6);
      auto closer = cause(before, [&] { values.close(); });
      EXPECT_THROW(select(on_send(values, kept, must_not_run)), channel_closed);
      EXPECT_THROW(select(on_send(values, kept, must_not_run), otherwise(must_not_run)), channel_closed);
      ASSERT_TRUE(kept);
      EXPECT_EQ(*kept, 6);
      closer.join();
    }
  });
}

TEST_P(Select, HearsOfACloseInBothDirections) {
  run([] {
    channel<int> values;
    auto closer = cause(false, [&] { values.close(); });
    try {
      EXPECT_EQ(select(on_send(values, 1, must_not_run), on_receive(values, [](auto v) { EXPECT_FALSE(v); })), 1u);
    } catch (const channel_closed&) {
    }
    closer.join();
  });
}

TEST_P(Select, WithoutACaseIsAnError) {
  run([] {
    channel<int> values(1);
    values.send(1);
    EXPECT_THROW(select(), usage_error);
    EXPECT_THROW(select(in_order), usage_error);
    EXPECT_THROW(select(when(false, on_receive(values, must_not_run)), when(false, after(0s, must_not_run))),
                 usage_error);
    EXPECT_THROW(select(when(false, otherwise(must_not_run))), usage_error);
    EXPECT_EQ(values.size(), 1u);
  });
}

TEST_P(Select, CountsCasesThatAreSwitchedOff) {
  run([] {
    channel<int> values(1);
    values.send(1);
    EXPECT_EQ(select(when(false, on_receive(values, must_not_run)), otherwise()), 1u);
    EXPECT_EQ(select(otherwise(), when(false, on_receive(values, must_not_run))), 0u);
    EXPECT_EQ(select(when(false, after(0s)), when(false, otherwise(must_not_run)),
                     when(true, on_receive(values, [](auto) {}))),
              2u);
    EXPECT_EQ(select(in_order, when(false, on_receive(values, must_not_run)), on_send(values, 2)), 1u);
  });
}

TEST_P(Select, TakesOtherwiseOnlyWhenNothingIsReady) {
  run([] {
    channel<int> values(1);
    int ran = 0;
    EXPECT_EQ(select(otherwise([&] { ++ran; })), 0u);
    EXPECT_EQ(select(on_receive(values, must_not_run), otherwise([&] { ++ran; }), after(1h, must_not_run)), 1u);
    EXPECT_EQ(ran, 2);
    for (int i = 0; i < 100; ++i) {
      values.send(i);
      EXPECT_EQ(select(otherwise(must_not_run), on_receive(values, [&](auto v) { EXPECT_EQ(v, i); })), 1u);
    }
  });
}

// A count that strays by 8 standard deviations from the mean fails: a fair choice does so in one of 10^15 runs.
TEST_P(Select, ChoosesFairlyAmongTheReady) {
  run([] {
    const int rounds = times(30000);
    channel<int> a(1), b(1), c(1), never;
    a.send(1);
    b.send(1);
    std::array<int, 4> chosen{};
    for (int i = 0; i < rounds; ++i) {
      const std::size_t which = select(on_receive(never, must_not_run), on_receive(a, [](auto) {}),
                                       on_receive(b, [](auto) {}), on_send(c, 1));
      ++chosen[which];
      which == 1 ? a.send(1) : which == 2 ? b.send(1) : (void)c.receive();
    }
    EXPECT_EQ(chosen[0], 0);
    for (const int count : {chosen[1], chosen[2], chosen[3]})
      EXPECT_LT(std::abs(count - rounds / 3.0), 4 * std::sqrt(rounds));
  });
}

TEST_P(Select, ChoosesFairlyAmongCasesOfOneChannel) {
  run([] {
    const int rounds = times(30000);
    channel<int> values(2);
    values.send(0);
    std::array<int, 3> chosen{};
    for (int i = 0; i < rounds; ++i) {
      const std::size_t which =
          select(on_receive(values, [](auto) {}), on_send(values, i), on_receive(values, [](auto) {}));
      ++chosen[which];
      which == 1 ? (void)values.receive() : values.send(i);
    }
    for (const int count : chosen) EXPECT_LT(std::abs(count - rounds / 3.0), 4 * std::sqrt(rounds));
  });
}

TEST_P(Select, InOrderPrefersTheFirstThatIsReady) {
  run([] {
    channel<int> a(1), b(1);
    a.send(1);
    b.send(2);
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(select(in_order, on_send(a, 3, must_not_run), on_receive(b, [](auto) {}), on_receive(a, must_not_run)),
                1u);
      b.send(2);
      EXPECT_EQ(select(in_order, on_receive(a, [](auto) {}), on_receive(b, must_not_run), after(0s, must_not_run)), 0u);
      a.send(1);
    }
  });
}

TEST_P(Select, NeverMeetsItself) {
  run([] {
    channel<int> values;
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(select(on_send(values, 1, must_not_run), on_receive(values, must_not_run), otherwise()), 2u);
      EXPECT_EQ(select(on_send(values, 1, must_not_run), on_receive(values, must_not_run),
                       on_send(values, 2, must_not_run), after(100us)),
                3u);
    }
    EXPECT_EQ(values.size(), 0u);
  });
}

TEST_P(Select, TakesTheEarlierOfTwoTimers) {
  run([] {
    channel<int> never;
    const auto start = ulexite::steady_clock::now();
    EXPECT_EQ(select(after(1h, must_not_run), after(2ms), on_receive(never, must_not_run)), 1u);
    EXPECT_EQ(select(after(2ms), after(1h, must_not_run)), 0u);
    EXPECT_GE(ulexite::steady_clock::now() - start, 4ms);
    EXPECT_EQ(select(after(-1h), after(1h, must_not_run)), 0u);
    EXPECT_EQ(select(after(std::chrono::hours::max(), must_not_run), after(0s)), 1u);
  });
}

TEST_P(Select, TakesATimeThatHasPassedBeforeOtherwise) {
  run([] {
    channel<int> never;
    EXPECT_EQ(select(otherwise(must_not_run), on_receive(never, must_not_run), after(0s)), 2u);
    EXPECT_EQ(select(otherwise(), on_receive(never, must_not_run), after(1h, must_not_run)), 0u);
    auto passed = after(1us);
    this_fiber::sleep_for(1ms);
    EXPECT_EQ(select(passed, otherwise(must_not_run)), 0u);
  });
}

TEST_P(Select, CountsTheTimeFromTheCase) {
  run([] {
    channel<int> values(1);
    values.send(1);
    EXPECT_EQ(select(after(0s, must_not_run), on_receive(values, [](auto) {})), 1u) << "what is ready comes first";
    auto sender = cause(false, [&] { values.send(2); });
    EXPECT_EQ(select(on_receive(values, [](auto v) { EXPECT_EQ(v, 2); }), after(1h, must_not_run)), 0u);
    sender.join();
  });
}

TEST_P(Select, LetsAnExceptionOfAHandlerOut) {
  run([] {
    for (const bool before : {true, false}) {
      channel<int> values(1), others(1);
      others.send(5);
      auto sender = cause(before, [&] { values.send(1); });
      int kept = 0;
      EXPECT_THROW(
          select(when(false, on_receive(others, must_not_run)), on_receive(values,
                                                                           [&](std::optional<int> v) {
                                                                             kept = *v;
                                                                             throw std::runtime_error("handler");
                                                                           })),
          std::runtime_error);
      EXPECT_EQ(kept, 1);
      EXPECT_EQ(others.size(), 1u);
      EXPECT_THROW(select(on_send(values, 2, [] { throw 1; })), int);
      EXPECT_EQ(values.receive(), 2) << "it was sent";
      EXPECT_THROW(select(after(0s, [] { throw 2; })), int);
      EXPECT_THROW(select(otherwise([] { throw 3; })), int);
      sender.join();
    }
  });
}

TEST_P(Select, LetsAHandlerSelectAndClose) {
  run([] {
    channel<int> values(2);
    values.send(1);
    values.send(2);
    int inner = 0;
    select(on_receive(values, [&](std::optional<int> outer) {
      EXPECT_EQ(outer, 1);
      select(on_receive(values, [&](std::optional<int> v) { inner = *v; }));
      values.close();
    }));
    EXPECT_EQ(inner, 2);
    EXPECT_EQ(select(on_receive(values, [](auto v) { EXPECT_FALSE(v); })), 0u);
  });
}

// A handler given as an lvalue is used, not copied; a temporary may be of a type that can only be moved.
TEST_P(Select, TakesHandlersOfAnyKind) {
  run([] {
    struct counter {
      counter() = default;
      counter(const counter&) = delete;
      int count = 0;
      void operator()(std::optional<int>) { ++count; }
    } receives;
    channel<int> values(2);
    values.send(1);
    values.send(2);
    select(on_receive(values, receives));
    select(on_receive(values, [own = std::make_unique<int>(3)](std::optional<int> v) { EXPECT_EQ(*v + 1, *own); }));
    EXPECT_EQ(receives.count, 1);
  });
}

}  // namespace
