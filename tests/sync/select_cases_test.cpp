// Select over ends of fibers and requests to stop, and what ends a select from outside.

#include "support/runtime_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/select.hpp>

#include <array>
#include <memory>
#include <stop_token>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class SelectCases : public WorkersTest {};
ULEXITE_TEST_WORKERS(SelectCases);

const auto must_not_run = [](auto&&...) { ADD_FAILURE() << "a case ran that was not chosen"; };

TEST_P(SelectCases, JoinsAFiberThatHasEndedOrEnds) {
  run([] {
    channel<int> never;
    for (const bool before : {true, false}) {
      auto fiber = spawn([&] {
        if (!before) wait_until_others_wait();
        return 5;
      });
      if (before) fiber.join();
      bool ended = false;
      EXPECT_EQ(select(on_receive(never, must_not_run), on_join(fiber, [&] { ended = fiber.done(); })), 1u);
      EXPECT_TRUE(ended);
      EXPECT_EQ(select(in_order, on_join(fiber), otherwise(must_not_run)), 0u) << "it stays ready";
      EXPECT_EQ(fiber.get(), 5) << "the result stays with the handle";
      EXPECT_THROW(select(on_join(fiber), otherwise(must_not_run)), usage_error);
    }
  });
}

TEST_P(SelectCases, LeavesAFiberThatDoesNotEnd) {
  run([] {
    channel<int> values(1);
    event go;
    auto fiber = spawn([&] {
      go.wait();
      return 5;
    });
    EXPECT_EQ(select(on_join(fiber, must_not_run), otherwise()), 1u);
    EXPECT_EQ(select(on_join(fiber, must_not_run), after(1ms)), 1u);
    auto sender = spawn([&] {
      wait_until_others_wait();
      values.send(1);
    });
    EXPECT_EQ(select(on_join(fiber, must_not_run), on_receive(values, [](auto) {})), 1u);
    go.set();
    EXPECT_EQ(fiber.get(), 5);
    sender.join();
  });
}

TEST_P(SelectCases, JoinsTheSameFiberTwice) {
  run([] {
    for (int i = 0; i < times(200); ++i) {
      auto fiber = spawn([i] {
        for (int k = 0; k < i % 8; ++k) this_fiber::yield();
      });
      int ran = 0;
      const std::size_t which = select(on_join(fiber, [&] { ++ran; }), on_join(fiber, [&] { ran += 10; }));
      EXPECT_EQ(ran, which == 0 ? 1 : 10);
      EXPECT_TRUE(fiber.done());
    }
  });
}

TEST_P(SelectCases, JoinsTheFirstOfSeveral) {
  run([] {
    std::atomic<bool> go{false};
    const auto wait = [&] { wait_until([&] { return go.load(); }); };
    auto slow = spawn(wait), slower = spawn(wait), failing = spawn([] { throw 1; });
    EXPECT_EQ(select(on_join(slow, must_not_run), on_join(failing), on_join(slower, must_not_run)), 1u);
    EXPECT_THROW(failing.get(), int);
    go = true;
    slow.get();
    slower.get();
  });
}

// The end of the fiber and a value come at the same time: whichever is taken, the other is still there.
TEST_P(SelectCases, LosesNeitherAnEndNorAValue) {
  run([] {
    std::array<int, 2> chosen{};
    for (int i = 0; i < times(3000); ++i) {
      channel<int> values(static_cast<std::size_t>(i % 2));
      auto sender = spawn([&, i] { values.send(i); });
      auto fiber = spawn([i] { return i; });
      const std::size_t which = select(on_join(fiber), on_receive(values, [&](auto v) { EXPECT_EQ(v, i); }));
      ++chosen[which];
      if (which == 0) {
        EXPECT_EQ(values.receive(), i);
      }
      EXPECT_EQ(fiber.get(), i);
      sender.join();
    }
  });
}

TEST_P(SelectCases, AThreadSelectsOverFibers) {
  for (int i = 0; i < times(300); ++i) {
    channel<int> values;
    auto fiber = rt().spawn([&] {
      wait_until_others_wait();
      values.send(1);
    });
    EXPECT_EQ(select(on_join(fiber, must_not_run), on_receive(values, [](auto v) { EXPECT_EQ(v, 1); })), 1u);
    EXPECT_EQ(select(on_join(fiber), on_receive(values, must_not_run)), 0u);
  }
}

TEST_P(SelectCases, HearsOfAStopThatWasOrIsRequested) {
  run([] {
    channel<int> never;
    for (const bool before : {true, false}) {
      std::stop_source source;
      auto stopper = spawn([&] {
        if (!before) wait_until_others_wait();
        source.request_stop();
      });
      if (before) stopper.join();
      bool ran = false;
      EXPECT_EQ(select(on_receive(never, must_not_run), on_stop(source.get_token(), [&] { ran = true; })), 1u);
      EXPECT_TRUE(ran);
      EXPECT_EQ(select(in_order, on_stop(source.get_token()), otherwise(must_not_run)), 0u) << "it stays ready";
      stopper.join();
    }
  });
}

TEST_P(SelectCases, NeverHearsOfAStopThatNobodyCanRequest) {
  run([] {
    std::stop_source source;
    EXPECT_EQ(select(on_stop(std::stop_token(), must_not_run), otherwise()), 1u);
    EXPECT_EQ(select(on_stop(std::stop_token(), must_not_run), after(1ms)), 1u);
    EXPECT_EQ(select(on_stop(source.get_token(), must_not_run), after(1ms)), 1u);
    source.request_stop();
  });
}

TEST_P(SelectCases, WithNothingButAStopThatNobodyCanRequestIsAnError) {
  const auto check = [] {
    const std::stop_token empty;
    EXPECT_THROW(select(on_stop(empty, must_not_run)), usage_error);
    EXPECT_THROW(select(in_order, when(true, on_stop(empty, must_not_run))), usage_error);
    EXPECT_EQ(select(when(true, on_stop(empty, must_not_run)), otherwise()), 1u);
    std::stop_token orphan = std::stop_source().get_token();
    EXPECT_THROW(select(on_stop(orphan, must_not_run)), usage_error);
  };
  run(check);
  check();
}

TEST_P(SelectCases, ReceivesWithoutAHandler) {
  run([] {
    channel<std::unique_ptr<int>> values(2);
    values.send(std::make_unique<int>(1));
    values.close();
    EXPECT_EQ(select(on_receive(values), after(1h, must_not_run)), 0u);
    EXPECT_EQ(values.size(), 0u);
    EXPECT_EQ(select(in_order, when(true, on_receive(values)), otherwise(must_not_run)), 0u) << "closed";
  });
}

TEST_P(SelectCases, HearsOfAStopByAThread) {
  run([] {
    for (int i = 0; i < times(300); ++i) {
      channel<int> never;
      std::stop_source source;
      std::thread stopper([&] { source.request_stop(); });
      EXPECT_EQ(select(on_stop(source.get_token()), on_receive(never, must_not_run)), 0u);
      stopper.join();
    }
  });
}

TEST_P(SelectCases, AThreadHearsOfAStopByAFiber) {
  for (int i = 0; i < times(300); ++i) {
    std::stop_source source;
    auto stopper = rt().spawn([&] { source.request_stop(); });
    EXPECT_EQ(select(on_stop(source.get_token()), after(1h, must_not_run)), 0u);
    stopper.join();
  }
}

// Many wait for one request; each has two cases for it, and a channel that is used at the same time.
TEST_P(SelectCases, AStopReachesAllWhoWaitForIt) {
  run([] {
    for (int round = 0; round < times(100); ++round) {
      std::stop_source source;
      channel<int> values;
      std::atomic<int> stopped{0}, received{0};
      std::vector<join_handle<>> all;
      for (int i = 0; i < 20; ++i)
        all.push_back(spawn([&] {
          const auto count = [&] { ++stopped; };
          while (select(on_stop(source.get_token(), count), on_receive(values, [&](auto) { ++received; }),
                        on_stop(source.get_token(), count)) == 1) {
          }
        }));
      int sent = 0;
      for (int i = 0; i < 20; ++i) sent += select(on_send(values, i), otherwise()) == 0;
      source.request_stop();
      for (auto& fiber : all) fiber.get();
      EXPECT_EQ(stopped, 20);
      EXPECT_EQ(received, sent);
    }
  });
}

TEST_P(SelectCases, AShieldedFiberHearsOfItsOwnStop) {
  run([] {
    channel<int> never;
    std::atomic<bool> ready{false};
    auto fiber = spawn([&](std::stop_token mine) {
      const shield all;
      ready = true;
      return select(on_receive(never, must_not_run), on_stop(mine));
    });
    wait_until([&] { return ready.load(); });
    wait_until_others_wait();
    fiber.request_stop();
    EXPECT_EQ(fiber.get(), 1u);
  });
}

TEST_P(SelectCases, ACancelledSelectThrows) {
  run([] {
    channel<std::unique_ptr<int>> values;
    auto kept = std::make_unique<int>(4);
    auto unended = spawn([] { this_fiber::sleep_for(1h); });
    std::stop_source source;
    for (const bool before : {true, false}) {
      std::atomic<bool> ready{false}, go{false};
      auto fiber = spawn([&] {
        ready = true;
        wait_until([&] { return go.load(); });
        select(on_send(values, kept, must_not_run), on_receive(values, must_not_run), after(1h, must_not_run),
               on_join(unended, must_not_run), on_stop(source.get_token(), must_not_run));
      });
      wait_until([&] { return ready.load(); });
      if (!before) {
        go = true;
        wait_until_others_wait();
      }
      fiber.request_stop();
      go = true;
      EXPECT_THROW(fiber.get(), operation_cancelled);
    }
    ASSERT_TRUE(kept);
    EXPECT_EQ(*kept, 4);
    std::unique_ptr<int> into;
    EXPECT_EQ(values.try_receive(into), channel_status::would_block) << "it has left the channel";
    EXPECT_EQ(values.try_send(kept), channel_status::would_block);
    unended.request_stop();
    EXPECT_THROW(unended.get(), operation_cancelled);
  });
}

TEST_P(SelectCases, ACancelledSelectIsNotServedEvenIfItCouldBe) {
  run([] {
    channel<int> values(1);
    values.send(1);
    std::atomic<bool> go{false};
    auto fiber = spawn([&] {
      wait_until([&] { return go.load(); });
      EXPECT_THROW(select(on_receive(values, must_not_run), otherwise(must_not_run)), operation_cancelled);
      const shield all;
      EXPECT_EQ(select(on_receive(values, [](auto) {}), otherwise(must_not_run)), 0u);
    });
    fiber.request_stop();
    go = true;
    fiber.get();
  });
}

// A value is sent while the receiving select is cancelled: either it was received or it was not sent.
TEST_P(SelectCases, ACancellationLosesNoValueThatIsReceived) {
  run([] {
    channel<int> never;
    for (int i = 0; i < times(3000); ++i) {
      channel<int> values(static_cast<std::size_t>(i % 2));
      bool received = false;
      auto receiver = spawn([&] { select(on_receive(values, [&](auto) { received = true; }), on_send(never, 1)); });
      for (int k = 0; k < i % 5; ++k) this_fiber::yield();
      auto stopper = spawn([&] { receiver.request_stop(); });
      int value = i;
      const bool sent = values.send_for(value, i % 3 * 10us) == channel_status::ok;
      stopper.join();
      try {
        receiver.get();
        EXPECT_TRUE(received);
      } catch (const operation_cancelled&) {
        EXPECT_FALSE(received);
      }
      EXPECT_EQ(sent, received || values.size() == 1);
    }
  });
}

TEST_P(SelectCases, ACancellationLosesNoValueThatIsSent) {
  run([] {
    channel<int> never;
    for (int i = 0; i < times(3000); ++i) {
      channel<std::unique_ptr<int>> values;
      auto value = std::make_unique<int>(i);
      auto sender = spawn([&] { select(on_send(values, value), on_receive(never, must_not_run)); });
      for (int k = 0; k < i % 5; ++k) this_fiber::yield();
      auto stopper = spawn([&] { sender.request_stop(); });
      std::unique_ptr<int> into;
      const bool received = values.receive_for(into, i % 3 * 10us) == channel_status::ok;
      stopper.join();
      try {
        sender.get();
        EXPECT_TRUE(received);
      } catch (const operation_cancelled&) {
        EXPECT_FALSE(received);
      }
      EXPECT_NE(value == nullptr, into == nullptr);
      EXPECT_EQ(value == nullptr, received);
    }
  });
}

TEST_P(SelectCases, ADeadlineBoundsASelect) {
  run([] {
    channel<std::unique_ptr<int>> values;
    auto kept = std::make_unique<int>(4);
    {
      const deadline_scope scope(1ms);
      EXPECT_EQ(select(on_send(values, kept), after(0s)), 1u) << "the nearer of the two";
      EXPECT_THROW(select(on_send(values, kept), after(1h)), deadline_exceeded);
      EXPECT_TRUE(scope.expired());
      EXPECT_THROW(select(on_send(values, kept), otherwise(must_not_run)), deadline_exceeded) << "it is sticky";
    }
    ASSERT_TRUE(kept);
    EXPECT_EQ(select(on_send(values, kept), otherwise()), 1u);
    const deadline_scope scope(1h);
    EXPECT_EQ(select(on_send(values, kept), after(1ms)), 1u);
  });
  channel<int> never;
  const deadline_scope of_a_thread(1ms);
  EXPECT_THROW(select(on_receive(never, must_not_run)), deadline_exceeded);
}

}  // namespace
