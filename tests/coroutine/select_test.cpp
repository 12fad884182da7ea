// Selects in coroutines: the tests of select, a second time.

#include "ways.hpp"

#include <stdexcept>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoSelect : public WaysTest {};
ULEXITE_TEST_WAYS(CoSelect);

const auto must_not_run = [](auto&&...) { ADD_FAILURE() << "a case ran that was not chosen"; };

TEST_P(CoSelect, CallsTheHandlerOfTheCaseThatItTakes) {
  channel<int> never, values(1);
  auto sends = start([&]() -> task<> { co_await co_send(values, 7); });
  EXPECT_EQ(finish([&]() -> task<int> {
              int got = 0;
              const std::size_t taken = co_await co_select(on_receive(never, must_not_run),
                                                           on_receive(values, [&](std::optional<int> v) { got = *v; }));
              EXPECT_EQ(taken, 1u);
              co_return got;
            }),
            7);
  sends.get();
}

TEST_P(CoSelect, MeetsAPartnerWithoutABuffer) {
  channel<int> there, back;
  auto echo = start([&]() -> task<> {
    int got = 0;
    co_await co_select(on_receive(there, [&](auto v) { got = *v; }), on_receive(back, must_not_run));
    co_await co_select(on_send(back, got + 1));
  });
  finish([&]() -> task<> {
    EXPECT_EQ(co_await co_select(on_receive(back, must_not_run), on_send(there, 4)), 1u);
    EXPECT_EQ(co_await co_select(on_send(there, 9, must_not_run), on_receive(back, [](auto v) { EXPECT_EQ(v, 5); })),
              1u);
  });
  echo.get();
}

TEST_P(CoSelect, MovesFromAVariableOnlyIfItIsSent) {
  finish([]() -> task<> {
    channel<std::unique_ptr<int>> full, values(1);
    auto one = std::make_unique<int>(1), two = std::make_unique<int>(2);
    EXPECT_EQ(co_await co_select(on_send(full, one), on_send(values, two)), 1u);
    EXPECT_TRUE(one);
    EXPECT_FALSE(two);
    EXPECT_EQ(co_await co_select(on_send(full, one), on_send(values, one), after(1ms)), 2u);
    EXPECT_EQ(co_await co_select(when(false, on_send(values, one)), after(0s)), 1u);
    EXPECT_TRUE(one && *one == 1);
  });
}

TEST_P(CoSelect, HearsOfACloseInBothDirections) {
  channel<int> from, to;
  auto waits = start_until_it_waits([&]() -> task<int> {
    int closed = 0;
    co_await co_select(on_receive(from, [&](auto v) { closed += !v; }), on_receive(to, must_not_run));
    try {
      co_await co_select(on_send(to, 1, must_not_run));
    } catch (const channel_closed&) {
      ++closed;
    }
    co_return closed;
  });
  from.close();
  wait_until_all_wait(rt());
  to.close();
  EXPECT_EQ(waits.get(), 2);
}

TEST_P(CoSelect, WithoutACaseIsAnError) {
  EXPECT_THROW(finish([]() -> task<> {
                 channel<int> values;
                 co_await co_select(when(false, on_receive(values)));
               }),
               usage_error);
}

TEST_P(CoSelect, ChoosesFairlyAmongTheReady) {
  finish([]() -> task<> {
    channel<int> a(1), b(1);
    int first = 0;
    for (int i = 0; i < 400; ++i) {
      while (a.size() == 0) a.send(1);
      while (b.size() == 0) b.send(1);
      first += co_await co_select(on_receive(a), on_receive(b)) == 0;
    }
    EXPECT_GT(first, 100);
    EXPECT_LT(first, 300);
    while (a.size() == 0) a.send(1);
    EXPECT_EQ(co_await co_select(in_order, on_receive(a), on_receive(b), after(1h)), 0u);
  });
}

TEST_P(CoSelect, TakesTheEarlierOfTwoTimers) {
  finish([]() -> task<> {
    channel<int> never;
    const auto begun = ulexite::steady_clock::now();
    EXPECT_EQ(co_await co_select(after(1h), on_receive(never), after(2ms)), 2u);
    EXPECT_GE(ulexite::steady_clock::now() - begun, 2ms);
  });
}

TEST_P(CoSelect, LetsAnExceptionOfAHandlerOut) {
  EXPECT_THROW(finish([]() -> task<> {
                 channel<int> values(1);
                 values.send(1);
                 co_await co_select(on_receive(values, [](auto) { throw std::runtime_error("handler"); }));
               }),
               std::runtime_error);
}

TEST_P(CoSelect, NeverMeetsItself) {
  channel<int> values;
  auto waits = start_until_it_waits([&]() -> task<std::size_t> {
    co_return co_await co_select(on_send(values, 1), on_receive(values, [](auto v) { EXPECT_EQ(v, 2); }));
  });
  EXPECT_FALSE(waits.done());
  values.send(2);
  EXPECT_EQ(waits.get(), 1u);
}

// Two that each send and receive on the same channels, in opposite orders, and fibers among them.
TEST_P(CoSelect, ManyCrossWithoutADeadlock) {
  channel<int> a, b;
  const int each = times(1000);
  std::atomic<int> sent{0}, received{0};
  const auto cross = [&](bool turned) -> task<> {
    for (int i = 0; i < each; ++i) {
      auto& one = turned ? a : b;
      auto& other = turned ? b : a;
      co_await co_select(on_send(one, 1, [&] { ++sent; }), on_receive(other, [&](auto v) { received += *v; }));
    }
  };
  std::vector<join_handle<>> all;
  for (int i = 0; i < 8; ++i) all.push_back(start([&, i] { return cross(i % 2 == 0); }));
  std::atomic<bool> over{false};
  auto rest = start([&]() -> task<> {  // serves whom no partner is left
    while (!over)
      co_await co_select(on_send(a, 1, [&] { ++sent; }), on_receive(a, [&](auto v) { received += *v; }),
                         on_send(b, 1, [&] { ++sent; }), on_receive(b, [&](auto v) { received += *v; }), after(1ms));
  });
  for (auto& one : all) one.get();
  over = true;
  rest.get();
  EXPECT_EQ(sent, received);
}

// Half of the selects have no timer, so that two meet however slow the machine is.
TEST_P(CoSelect, LosesNoValueToItsTimer) {
  channel<int> values;
  const int count = times(2000);
  auto receives = start([&]() -> task<int> {
    int total = 0;
    bool open = true;
    for (int i = 0; open; ++i)
      co_await co_select(on_receive(values, [&](auto v) { v ? total += * v : open = false; }),
                         when(i % 2 == 0, after(1us)));
    co_return total;
  });
  auto sends = start([&]() -> task<> {
    for (int i = 0; i < count; ++i) {
      bool sent = false;
      for (int k = 0; !sent; ++k)
        co_await co_select(on_send(values, 1, [&] { sent = true; }), when(k % 2 == 0, after(1us)));
    }
    values.close();
  });
  sends.get();
  EXPECT_EQ(receives.get(), count);
}

// Without a stop of the fiber itself.
TEST_P(CoSelect, HearsAStopToken) {
  std::stop_source source;
  auto waits = start_until_it_waits([&]() -> task<bool> {
    bool heard = false;
    channel<int> never;
    co_await co_select(on_receive(never), on_stop(source.get_token(), [&] { heard = true; }));
    co_return heard;
  });
  source.request_stop();
  EXPECT_TRUE(waits.get());
}

}  // namespace
