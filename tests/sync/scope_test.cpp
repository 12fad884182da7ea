#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/future.hpp>
#include <ulexite/sync/task_group.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using std::runtime_error;

class Scope : public WorkersTest {};
ULEXITE_TEST_WORKERS(Scope);

TEST_P(Scope, ReturnsWhatTheBodyGives) {
  run([] {
    std::atomic<int> ran{0};
    EXPECT_EQ(scope([&](task_group& group) {
                group.spawn([&] {
                  this_fiber::yield();
                  ++ran;
                });
                return 5;
              }),
              5);
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(*scope([](task_group&) { return std::make_unique<int>(6); }), 6);
    static_assert(std::is_void_v<decltype(scope([](task_group&) {}))>);
    scope([&](task_group& group) { group.spawn([&] { ++ran; }); });
    EXPECT_EQ(ran, 2);
  });
}

TEST_P(Scope, ThrowsTheFailureOfAChild) {
  run([] {
    std::atomic<int> alive{0};
    const auto body = [&](task_group& group) {
      group.spawn(waits(alive));
      group.spawn([] { throw runtime_error("child"); });
      return 1;
    };
    EXPECT_EQ(message_of([&] { scope(body); }), "child");
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(Scope, ThrowsWhatTheBodyThrows) {
  run([] {
    std::atomic<int> alive{0};
    const auto body = [&](task_group& group) {
      for (int i = 0; i < 3; ++i) group.spawn(waits(alive));
      group.spawn([] { throw runtime_error("child"); }).join();
      throw runtime_error("body");
    };
    EXPECT_EQ(message_of([&] { scope(body); }), "body");
    EXPECT_EQ(alive, 0);
  });
}

// The body hears only of the consequence: its end of the channel is closed, or its promise is broken.
TEST_P(Scope, ThrowsTheFailureOfAChildInsteadOfItsConsequence) {
  run([] {
    for (int i = 0; i < times(100); ++i) {
      const auto sends = [] {
        auto [to, end] = make_channel<int>();
        scope([&, from = std::move(end)](task_group& group) mutable {
          group.spawn(
              [](receiver<int> mine) {
                if (mine.receive()) throw runtime_error("disk full");
              },
              std::move(from));
          for (int k = 0; k < 100; ++k) to.send(1);
        });
      };
      EXPECT_EQ(message_of(sends), "disk full");
      const auto waits_for_a_promise = [] {
        scope([](task_group& group) {
          promise<int> given;
          auto result = given.get_future();
          group.spawn(
              [](promise<int>) {
                this_fiber::yield();
                throw runtime_error("disk full");
              },
              std::move(given));
          result.get();
        });
      };
      EXPECT_EQ(message_of(waits_for_a_promise), "disk full");
    }
    const auto closed_by_nobody = [] {
      channel<int> ended;
      ended.close();
      scope([&](task_group&) { ended.send(1); });
    };
    EXPECT_THROW(closed_by_nobody(), channel_closed);
  });
}

TEST_P(Scope, Nests) {
  run([] {
    const int sum = scope([](task_group& outer) {
      auto left = outer.spawn([] {
        return scope([](task_group& inner) {
          auto a = inner.spawn([] { return 1; });
          auto b = inner.spawn([] { return 2; });
          return a.get() + b.get();
        });
      });
      return left.get() + scope([](task_group& inner) { return inner.spawn([] { return 4; }).get(); });
    });
    EXPECT_EQ(sum, 7);
  });
}

// The body waits for what a child should have brought, until its time is over: the child's failure says why.
TEST_P(Scope, AFailureThatCameFirstIsThrownInsteadOfTheCancellation) {
  run([] {
    const auto body = [](task_group& group) {
      auto child = group.spawn([] { throw runtime_error("child"); });
      child.join();
      channel<int>().receive();
    };
    EXPECT_EQ(message_of([&] { timeout(10ms, [&] { scope(body); }); }), "child");
    auto cancelled = spawn([&] { scope(body); });
    cancelled.request_stop();
    EXPECT_EQ(message_of([&] { cancelled.get(); }), "child");
    EXPECT_THROW(timeout(1ms, [] { scope([](task_group&) { channel<int>().receive(); }); }), deadline_exceeded);
  });
}

TEST_P(Scope, TheFailureOfAChildEndsTheWaitOfTheBody) {
  run([] {
    channel<int> never;
    const auto body = [&](task_group& group) {
      group.spawn([] {
        this_fiber::yield();
        throw runtime_error("child");
      });
      const auto value = never.receive();
      ADD_FAILURE() << "the body has received";
      return value;
    };
    for (int i = 0; i < times(100); ++i) {
      EXPECT_EQ(message_of([&] { scope(body); }), "child");
      EXPECT_FALSE(this_fiber::stop_requested());
      this_fiber::check();
      this_fiber::sleep_for(1us);
    }
  });
}

TEST_P(Scope, TheBodyHearsOfAFailureUntilItEnds) {
  run([] {
    const auto body = [](task_group& group) {
      group.spawn([] { throw runtime_error("child"); }).join();
      EXPECT_TRUE(this_fiber::stop_requested());
      EXPECT_THROW(this_fiber::check(), operation_cancelled);
      EXPECT_THROW(channel<int>().receive(), operation_cancelled);
      {
        const shield unheard;
        this_fiber::sleep_for(1us);
      }
      EXPECT_EQ(spawn([] { return this_fiber::stop_requested(); }).get(), false);
      throw runtime_error("body");
    };
    EXPECT_EQ(message_of([&] { scope(body); }), "body");
    this_fiber::check();
  });
}

TEST_P(Scope, ABodyThatHandlesTheFailureOfAWaitGoesOn) {
  run([] {
    for (const bool waits_first : {true, false}) {
      EXPECT_EQ(scope([&](task_group& group) {
                  auto child = group.spawn([&] {
                    if (waits_first) this_fiber::yield();
                    throw runtime_error("child");
                  });
                  if (!waits_first) child.join();
                  EXPECT_EQ(message_of([&] { group.wait(); }), "child");
                  EXPECT_FALSE(this_fiber::stop_requested());
                  this_fiber::check();
                  return 1;
                }),
                1);
      this_fiber::check();
    }
  });
}

// Each failure that is handled cancels the body once.
TEST_P(Scope, ASecondFailureCancelsTheBodyAgain) {
  run([] {
    const auto body = [](task_group& group) {
      group.spawn([] { throw runtime_error("first"); });
      EXPECT_EQ(message_of([&] { group.wait(); }), "first");
      group.spawn([] { throw runtime_error("second"); });
      wait_for_ever();
    };
    EXPECT_EQ(message_of([&] { scope(body); }), "second");
    this_fiber::check();
  });
}

TEST_P(Scope, AFailureOfTheOuterScopeReachesTheInnerBody) {
  run([] {
    bool inner_ended = false;
    const auto body = [&](task_group& outer) {
      outer.spawn([] {
        this_fiber::sleep_for(1ms);
        throw runtime_error("outer child");
      });
      try {
        scope([](task_group& inner) {
          inner.spawn([] { wait_for_ever(); });
          wait_for_ever();
        });
      } catch (const operation_cancelled&) {
        inner_ended = true;
      }
      EXPECT_THROW(this_fiber::check(), operation_cancelled);  // still, because the outer scope has failed
    };
    EXPECT_EQ(message_of([&] { scope(body); }), "outer child");
    EXPECT_TRUE(inner_ended);
    this_fiber::check();
  });
}

TEST_P(Scope, AFailureOfTheInnerScopeStaysThere) {
  run([] {
    EXPECT_EQ(scope([](task_group& outer) {
                auto sibling = outer.spawn([] {
                  this_fiber::sleep_for(1ms);
                  return 3;
                });
                const auto body = [](task_group& inner) {
                  inner.spawn([] { throw runtime_error("inner child"); });
                  wait_for_ever();
                };
                EXPECT_EQ(message_of([&] { scope(body); }), "inner child");
                this_fiber::check();
                return sibling.get();
              }),
              3);
  });
}

TEST_P(Scope, ARequestToStopOutlivesTheScopeThatFailed) {
  std::atomic<bool> first_is_over{false};
  auto fiber = rt().spawn([&] {
    const auto body = [](task_group& group) {
      group.spawn([] {
        this_fiber::yield();
        throw runtime_error("child");
      });
      wait_for_ever();
    };
    EXPECT_EQ(message_of([&] { scope(body); }), "child");
    first_is_over = true;
    while (!this_fiber::get_stop_token().stop_requested()) this_fiber::yield();
    EXPECT_ANY_THROW(scope(body));
    EXPECT_TRUE(this_fiber::stop_requested());
    this_fiber::check();
  });
  wait_until([&] { return first_is_over.load(); });
  fiber.request_stop();
  EXPECT_THROW(fiber.get(), operation_cancelled);
}

// Children and body meet the same deadline at the same time: that is what is thrown, whichever was first.
TEST_P(Scope, ADeadlineOfAllIsADeadline) {
  run([] {
    for (int i = 0; i < times(30); ++i)
      EXPECT_THROW(timeout(100us,
                           [] {
                             scope([](task_group& group) {
                               for (int k = 0; k < 4; ++k) group.spawn([] { wait_for_ever(); });
                               channel<int>().receive();
                             });
                           }),
                   deadline_exceeded);
    EXPECT_THROW(scope([](task_group& group) {
                   {
                     const deadline_scope of_the_child(1ms);
                     group.spawn([] { wait_for_ever(); });
                   }
                   channel<int>().receive();
                 }),
                 deadline_exceeded);
    this_fiber::check();
  });
}

}  // namespace
