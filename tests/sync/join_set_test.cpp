#include "support/waiting.hpp"

#include <ulexite/base/error.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/fiber_local.hpp>
#include <ulexite/sync/join_set.hpp>

#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class JoinSet : public WorkersTest {};
ULEXITE_TEST_WORKERS(JoinSet);

TEST_P(JoinSet, GivesResultsInTheOrderOfTheEnds) {
  run([] {
    ulexite::event gates[3];
    join_set<std::unique_ptr<int>> children;
    EXPECT_EQ(children.next(), std::nullopt);
    for (int i = 0; i < 3; ++i)
      children.spawn([&, i] {
        gates[i].wait();
        return std::make_unique<int>(i);
      });
    EXPECT_EQ(children.size(), 3U);
    for (const int i : {2, 0, 1}) {
      gates[i].set();
      EXPECT_EQ(*children.next().value(), i);
    }
    EXPECT_EQ(children.next(), std::nullopt);
    children.spawn([](std::unique_ptr<int> mine) { return mine; }, std::make_unique<int>(9));
    EXPECT_EQ(*children.next().value(), 9);
  });
}

TEST_P(JoinSet, ThrowsFailuresAndGoesOn) {
  run([] {
    join_set<int> children;
    for (int i = 0; i < 10; ++i)
      children.spawn([i] {
        if (i % 2 == 0) throw i;
        return i;
      });
    std::set<int> results, failures;
    for (;;) try {
        const auto result = children.next();
        if (!result) break;
        results.insert(*result);
      } catch (const int failure) {
        failures.insert(failure);
      }
    EXPECT_EQ(results, (std::set<int>{1, 3, 5, 7, 9}));
    EXPECT_EQ(failures, (std::set<int>{0, 2, 4, 6, 8}));
  });
}

TEST_P(JoinSet, CancelsTheRestAtItsEnd) {
  run([] {
    std::atomic<int> ended{0};
    {
      join_set<> children;
      for (int i = 0; i < 5; ++i)
        children.spawn([&] {
          try {
            channel<int>().receive();
          } catch (const operation_cancelled&) {
            ++ended;
            throw;
          }
        });
      children.spawn([] { throw std::runtime_error("dropped"); });
      children.spawn([] {});
      bool met = false;
      try {
        met = children.next().has_value();
      } catch (const std::runtime_error&) {
        met = true;
      }
      EXPECT_TRUE(met);
    }
    EXPECT_EQ(ended, 5);
  });
}

TEST_P(JoinSet, PassesCancelledChildrenOver) {
  run([] {
    join_set<int> children;
    children.spawn([] { return channel<int>().receive().value(); });
    children.spawn([] {
      const shield unheard;
      this_fiber::sleep_for(1ms);
      return 4;
    });
    EXPECT_TRUE(children.request_stop());
    EXPECT_EQ(children.next(), 4);
    EXPECT_EQ(children.next(), std::nullopt);
  });
}

TEST_P(JoinSet, WaitsForRoom) {
  run([] {
    std::atomic<int> running{0};
    join_set<int> children(3);
    for (int i = 0; i < 30; ++i)
      children.spawn([&, i] {
        EXPECT_LE(++running, 3);
        this_fiber::yield();
        --running;
        return i;
      });
    int sum = 0;
    while (const auto result = children.next()) sum += *result;
    EXPECT_EQ(sum, 435);
    EXPECT_THROW(join_set<int>(0), usage_error);
  });
}

TEST_P(JoinSet, NextIsACancellationPointThatTakesNothing) {
  run([] {
    ulexite::event gate;
    join_set<int> children;
    children.spawn([&] {
      gate.wait();
      return 1;
    });
    EXPECT_THROW(timeout(1ms, [&] { return children.next(); }), deadline_exceeded);
    gate.set();
    EXPECT_EQ(children.next(), 1);
  });
}

struct throws_when_moved {
  throws_when_moved() = default;
  throws_when_moved(throws_when_moved&&) { throw std::runtime_error("no move"); }
  void operator()() const {}
};

TEST_P(JoinSet, ASpawnThatThrowsLeavesNothingToWaitFor) {
  run([] {
    join_set<> children;
    EXPECT_THROW(children.spawn(throws_when_moved()), std::runtime_error);
    EXPECT_EQ(children.next(), std::nullopt);
  });
}

// Tells when it is destroyed, and lets other fibers run before.
class slow_to_end {
 public:
  explicit slow_to_end(std::atomic<bool>& ended) : ended_(&ended) {}
  slow_to_end(slow_to_end&& other) noexcept : ended_(std::exchange(other.ended_, nullptr)) {}
  slow_to_end& operator=(slow_to_end&&) = delete;
  ~slow_to_end() {
    if (!ended_) return;
    for (int i = 0; i < 3; ++i) this_fiber::yield();
    *ended_ = true;
  }

 private:
  std::atomic<bool>* ended_;
};

TEST_P(JoinSet, AFunctionIsDestroyedBeforeItsResultIsGiven) {
  run([] {
    std::atomic<bool> capture{false}, argument{false}, local{false};
    fiber_local<slow_to_end> of_the_child([&] { return slow_to_end(local); });
    join_set<int> children;
    children.spawn(
        [&of_the_child, held = slow_to_end(capture)](const slow_to_end&) {
          static_cast<void>(of_the_child.get());
          return 1;
        },
        slow_to_end(argument));
    EXPECT_EQ(children.next(), 1);
    EXPECT_TRUE(capture);
    EXPECT_TRUE(argument);
    EXPECT_TRUE(local);
  });
}

TEST_P(JoinSet, OfVoidDropsResults) {
  run([] {
    join_set<> children;
    children.spawn([] { return 1; });
    EXPECT_TRUE(children.next());
    EXPECT_FALSE(children.next());
  });
}

TEST_P(JoinSet, ResultsAreReferencesToo) {
  run([] {
    int object = 0;
    join_set<int&> children;
    children.spawn([&]() -> int& { return object; });
    EXPECT_EQ(&children.next().value().get(), &object);
  });
}

}  // namespace
