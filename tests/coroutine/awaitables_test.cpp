// What holds for every wait, in a coroutine and in a fiber: the tests run for each kind in turn.

#include "select_awaitables.hpp"

#include <ulexite/runtime/fiber_view.hpp>
#include <ulexite/runtime/stopped_world.hpp>

#include <sstream>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Awaitables : public WaysTest {
 protected:
  // Calls body(kind, object) for each kind that is wanted.
  template <class F>
  void for_each(F body, bool only_cancellable = false) {
    for (const awaitable_kind& kind : awaitables::all_kinds()) {
      if (only_cancellable && !kind.cancellable) continue;
      SCOPED_TRACE(kind.name);
      body(kind, [this, &kind] { return kind.make(rt()); });
    }
  }
};
ULEXITE_TEST_WAYS(Awaitables);

TEST_P(Awaitables, PassWhenTheyAreReady) {
  for_each([&](const awaitable_kind&, auto make) {
    const auto at = make();
    at->let();
    finish([&] { return at->wait(); });
  });
}

TEST_P(Awaitables, PassInTheMiddleOfATask) {
  for_each([&](const awaitable_kind&, auto make) {
    const auto one = make(), two = make();
    one->let();
    EXPECT_EQ(finish([&]() -> task<int> {
                co_await one->wait();
                two->let();
                co_await co_yield_now();
                co_await two->wait();
                co_return 5;
              }),
              5);
  });
}

TEST_P(Awaitables, WaitUntilAThreadLetsThemPass) {
  for_each([&](const awaitable_kind&, auto make) {
    const auto at = make();
    auto waiter = start_until_it_waits([&] { return at->wait(); });
    EXPECT_FALSE(waiter.done());
    at->let();
    waiter.get();
  });
}

TEST_P(Awaitables, WaitUntilAFiberLetsThemPass) {
  for_each([&](const awaitable_kind&, auto make) {
    const auto at = make();
    auto waiter = start_until_it_waits([&] { return at->wait(); });
    EXPECT_FALSE(waiter.done());
    rt().spawn([&] { at->let(); }).get();
    waiter.get();
  });
}

TEST_P(Awaitables, WaitUntilACoroutineLetsThemPass) {
  for_each([&](const awaitable_kind&, auto make) {
    const auto at = make();
    auto waiter = start([&] { return at->wait(); });
    rt().spawn([&]() -> task<> {
          co_await co_yield_now();
          at->let();
        })
        .get();
    waiter.get();
  });
}

TEST_P(Awaitables, ThatAreStoppedHaveTakenNothing) {
  for_each(
      [&](const awaitable_kind&, auto make) {
        const auto at = make();
        auto waiter = start_until_it_waits([&] { return at->wait(); });
        waiter.request_stop();
        EXPECT_THROW(waiter.get(), operation_cancelled);
        at->let();
        finish([&] { return at->wait(); });
      },
      true);
}

TEST_P(Awaitables, OfAFiberThatWasStoppedBeforeThrowAtOnce) {
  for_each(
      [&](const awaitable_kind&, auto make) {
        const auto at = make();
        ulexite::event go;
        auto waiter = start_until_it_waits([&]() -> task<> {
          {
            const shield until_stopped;
            co_await co_wait(go);
          }
          co_await at->wait();
        });
        waiter.request_stop();
        go.set();
        EXPECT_THROW(waiter.get(), operation_cancelled);
        at->let();
        finish([&] { return at->wait(); });
      },
      true);
}

TEST_P(Awaitables, OthersAreSparedByAStop) {
  for_each([&](const awaitable_kind& kind, auto make) {
    if (kind.cancellable) return;
    const auto at = make();
    auto waiter = start_until_it_waits([&] { return at->wait(); });
    waiter.request_stop();
    wait_until_all_wait(rt());
    EXPECT_FALSE(waiter.done());
    at->let();
    waiter.get();
  });
}

TEST_P(Awaitables, EndAtADeadlineOfTheirOwnFiber) {
  for_each(
      [&](const awaitable_kind&, auto make) {
        const auto at = make();
        EXPECT_EQ(finish([&]() -> task<int> {
                    int ended = 0;
                    try {
                      const deadline_scope limit(200us);
                      co_await at->wait();
                    } catch (const deadline_exceeded&) {
                      ended = 1;
                    }
                    co_await co_sleep_for(1us);
                    at->let();
                    co_await at->wait();
                    co_return ended;
                  }),
                  1);
      },
      true);
}

TEST_P(Awaitables, EndAtAnInheritedDeadline) {
  for_each(
      [&](const awaitable_kind&, auto make) {
        const auto at = make();
        run([&] {
          const deadline_scope limit(200us);
          auto waiter = start([&] { return at->wait(); });
          EXPECT_THROW(waiter.get(), deadline_exceeded);
        });
        at->let();
        finish([&] { return at->wait(); });
      },
      true);
}

TEST_P(Awaitables, UnderAShieldAreSparedByAStop) {
  for_each(
      [&](const awaitable_kind&, auto make) {
        const auto at = make();
        auto waiter = start_until_it_waits([&]() -> task<> {
          const shield unheard;
          co_await at->wait();
        });
        waiter.request_stop();
        wait_until_all_wait(rt());
        EXPECT_FALSE(waiter.done());
        at->let();
        waiter.get();
      },
      true);
}

TEST_P(Awaitables, AreRefusedUnderNoSuspend) {
  for_each([&](const awaitable_kind&, auto make) {
    const auto at = make();
    EXPECT_TRUE(finish([&]() -> task<bool> {
      bool refused = false;
      try {
        const no_suspend_scope stays;
        co_await at->wait();
      } catch (const usage_error&) {
        refused = true;
      }
      co_await co_yield_now();
      at->let();
      co_await at->wait();
      co_return refused;
    }));
  });
}

TEST_P(Awaitables, AreNamedInDumps) {
  for_each([&](const awaitable_kind& kind, auto make) {
    const auto at = make();
    auto waiter = start_until_it_waits([&] { return at->wait(); });
    std::ostringstream text;
    rt().dump(text, {.backtraces = false});
    EXPECT_NE(text.str().find(kind.words), std::string::npos) << text.str();
    at->let();
    waiter.get();
  });
}

TEST_P(Awaitables, HaveNoStackWhileACoroutineWaits) {
  if (std::get<0>(GetParam()) != way::coroutine) return;
  for_each([&](const awaitable_kind&, auto make) {
    const auto at = make();
    auto waiter = start_until_it_waits([&] { return at->wait(); });
    int found = 0;
    {
      const stopped_world now(rt());
      for_each_fiber(rt(), [&](const fiber_view& each) { found += each.id == waiter.id() && !each.low; });
    }
    EXPECT_EQ(found, 1);
    at->let();
    waiter.get();
  });
}

// A thread that has no runtime.
TEST_P(Awaitables, BlockAPlainThread) {
  for_each([&](const awaitable_kind&, auto make) {
    const auto at = make();
    std::thread waiter([&] { await(at->wait()); });
    finish([&]() -> task<> {
      co_await co_yield_now();
      at->let();
    });
    waiter.join();
  });
}

// In a coroutine of another library they block the fiber that runs it.
TEST_P(Awaitables, BlockACoroutineOfAnotherLibrary) {
  for_each([&](const awaitable_kind&, auto make) {
    const auto at = make();
    bool passed = false;
    auto waiter = start_until_it_waits([&]() -> task<> {
      [](awaitable& of, bool& done) -> eager {
        co_await of.wait();
        done = true;
      }(*at, passed);
      EXPECT_TRUE(passed);
      co_return;
    });
    EXPECT_FALSE(waiter.done());
    at->let();
    waiter.get();
  });
}

TEST_P(Awaitables, EndWithTheRuntime) {
  for_each(
      [&](const awaitable_kind& kind, auto) {
        std::atomic<int> alive{0}, cancelled{0};
        runtime& ends = make(std::get<1>(GetParam()));
        const auto at = kind.make(rt());
        auto waiter = spawn_until_it_waits(ends, [&]() -> task<> {
          const lives here(alive);
          try {
            co_await at->wait();
          } catch (const operation_cancelled&) {
            ++cancelled;
            throw;
          }
        });
        waiter.detach();
        EXPECT_EQ(end(ends, shutdown_mode::cancel), 0u);
        EXPECT_EQ(alive, 0);
        EXPECT_EQ(cancelled, 1);
      },
      true);
}

// What waits then keeps its frame for ever, as a fiber keeps its stack. Others that wait at the object pass it over.
TEST_P(Awaitables, OfARuntimeThatHasStoppedArePassedOver) {
  static std::atomic<int> alive{0};
  for_each([&](const awaitable_kind& kind, auto) {
    if (!kind.alone || std::string_view(kind.words).find("descriptor") != std::string_view::npos) return;
    alive = 0;
    runtime& ends = make(std::get<1>(GetParam()));
    const auto at = kind.make(rt());
    spawn_until_it_waits(ends, [&at, mine = lives(alive)]() -> task<> {
      const lives here(alive);
      co_await at->wait();
    }).detach();
    EXPECT_EQ(alive, 2);
    EXPECT_EQ(end(ends, shutdown_mode::abandon), 1u);
    EXPECT_EQ(alive, 2);
    at->let();
    finish([&] { return at->wait(); });
  });
}

}  // namespace
