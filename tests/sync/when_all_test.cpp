#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/when.hpp>

#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using std::runtime_error;

class WhenAll : public WorkersTest {};
ULEXITE_TEST_WORKERS(WhenAll);

TEST_P(WhenAll, GivesTheResultsInTheirOrder) {
  run([] {
    int there = 6;
    const auto results =
        when_all([] { return 1; }, [] { this_fiber::yield(); }, [] { return std::make_unique<int>(3); },
                 [] { return std::string("four"); }, [&]() -> int& { return there; });
    static_assert(std::is_same_v<decltype(results),
                                 const std::tuple<int, std::monostate, std::unique_ptr<int>, std::string, int&>>);
    EXPECT_EQ(std::get<0>(results), 1);
    EXPECT_EQ(*std::get<2>(results), 3);
    EXPECT_EQ(std::get<3>(results), "four");
    EXPECT_EQ(&std::get<4>(results), &there);
    EXPECT_EQ(when_all(), std::tuple<>());
    EXPECT_EQ(std::get<0>(when_all([] { return std::tuple(1, 2); })), std::tuple(1, 2));
  });
}

TEST_P(WhenAll, CallsFunctionsOfAnyValueCategory) {
  run([] {
    const auto constant = [] { return 1; };
    auto changing = [count = 1]() mutable { return ++count; };
    struct once {
      std::unique_ptr<int> value = std::make_unique<int>(3);
      int operator()() && { return *std::move(value); }
    };
    EXPECT_EQ(when_all(constant, changing, once()), std::tuple(1, 2, 3));
    EXPECT_EQ(changing(), 3) << "an lvalue is called, not a copy of it";
  });
}

TEST_P(WhenAll, RunsThemAtTheSameTime) {
  run([] {
    channel<int> there, back;
    const auto [a, b] = when_all(
        [&] {
          there.send(1);
          return *back.receive();
        },
        [&] {
          const int got = *there.receive();
          back.send(2);
          return got;
        });
    EXPECT_EQ(a, 2);
    EXPECT_EQ(b, 1);
  });
}

TEST_P(WhenAll, AFailureCancelsTheOthersAndIsThrownWhenTheyHaveEnded) {
  run([] {
    std::atomic<int> alive{0}, begun{0};
    const auto waiting = waits(alive, begun);
    const auto fails = [&]() -> int {
      wait_until([&] { return begun == 2; });
      throw runtime_error("it");
    };
    EXPECT_THROW(when_all(waiting, fails, waiting), runtime_error);
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(WhenAll, ItsCallerMayBeCancelled) {
  run([] {
    std::atomic<int> alive{0}, begun{0};
    const auto waiting = waits(alive, begun);
    auto caller = spawn([&] {
      EXPECT_THROW(when_all(waiting, waiting, waiting), operation_cancelled);
      EXPECT_EQ(alive, 0);
    });
    wait_until([&] { return begun == 3; });
    caller.request_stop();
    caller.get();
  });
}

TEST_P(WhenAll, ARefusedSpawnCancelsThoseBefore) {
  make({.threads = GetParam(), .max_fibers = 3}).run([] {
    for (int i = 0; i < times(100); ++i) {
      std::atomic<int> alive{0};
      const auto waiting = waits(alive);
      try {
        when_all(waiting, waiting, waiting, waiting);
        ADD_FAILURE() << "four fibers where three may live";
      } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), errc::limit_reached);
      }
      EXPECT_EQ(alive, 0);
    }
  });
}

TEST_P(WhenAll, OverHandlesGivesTheResultsInTheirOrder) {
  run([] {
    std::vector<join_handle<int>> many;
    for (int i = 0; i < 20; ++i)
      many.push_back(spawn([i] {
        for (int j = i; j < 20; ++j) this_fiber::yield();
        return i;
      }));
    const std::vector<int> results = when_all(many);
    ASSERT_EQ(results.size(), 20u);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(results[i], i);
    for (const auto& each : many) EXPECT_FALSE(each.joinable());

    std::array moves{spawn([] { return std::make_unique<int>(1); }), spawn([] { return std::make_unique<int>(2); })};
    const auto moved = when_all(std::span(moves));
    EXPECT_EQ(*moved[0] + *moved[1], 3);

    join_handle<> voids[]{spawn([] {}), spawn([] {})};
    EXPECT_EQ(when_all(voids), std::vector<std::monostate>(2));
    std::vector<join_handle<bool>> flags;
    flags.push_back(spawn([] { return true; }));
    flags.push_back(spawn([] { return false; }));
    EXPECT_EQ(when_all(std::move(flags)), (std::vector{true, false}));
  });
}

TEST_P(WhenAll, OverManyHandlesThatEndTogether) {
  run([] {
    constexpr int count = 2000;
    event go;
    std::vector<join_handle<int>> handles;
    for (int i = 0; i < count; ++i)
      handles.push_back(spawn([&go, i] {
        go.wait();
        return i;
      }));
    go.set();
    const std::vector<int> results = when_all(handles);
    for (int i = 0; i < count; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], i);
  });
}

TEST_P(WhenAll, OverHandlesReferencesPassThrough) {
  run([] {
    int numbers[2] = {3, 4};
    std::vector<join_handle<const int&>> handles;
    for (const int& each : numbers) handles.push_back(spawn([&]() -> const int& { return each; }));
    const std::vector<std::reference_wrapper<const int>> results = when_all(handles);
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(&results[0].get(), &numbers[0]);
    EXPECT_EQ(&results[1].get(), &numbers[1]);
  });
}

TEST_P(WhenAll, OverNoHandlesIsAtOnce) {
  run([] {
    EXPECT_TRUE(when_all(std::span<join_handle<int>>()).empty());
    std::vector<join_handle<>> none;
    EXPECT_TRUE(when_all(none).empty());
  });
}

TEST_P(WhenAll, OverHandlesThatHaveEnded) {
  run([] {
    std::vector<join_handle<int>> ended;
    for (int i = 0; i < 3; ++i) ended.push_back(spawn([i] { return i; }));
    for (auto& each : ended) each.join();
    EXPECT_EQ(when_all(ended), (std::vector{0, 1, 2}));
  });
}

TEST_P(WhenAll, OverAHandleWithoutAFiberIsAUsageError) {
  run([] {
    std::vector<join_handle<int>> handles;
    handles.push_back(spawn([] { return 1; }));
    handles.emplace_back();
    EXPECT_THROW(when_all(handles), usage_error);
    EXPECT_EQ(handles[0].get(), 1) << "nothing has happened to the others";
  });
}

// The first would wait for ever: only the failure of the last can end it.
TEST_P(WhenAll, OverHandlesNoticesALateHandlesFailureAtOnce) {
  run([] {
    std::atomic<int> alive{0};
    std::vector<join_handle<>> handles;
    for (int i = 0; i < 3; ++i) handles.push_back(spawn(waits(alive)));
    handles.push_back(spawn([&] {
      wait_until([&] { return alive == 3; });
      throw runtime_error("late");
    }));
    EXPECT_THROW(when_all(handles), runtime_error);
    EXPECT_EQ(alive, 0);
    for (const auto& each : handles) EXPECT_FALSE(each.joinable());
  });
}

TEST_P(WhenAll, OverHandlesOnlyTheFirstFailureIsThrown) {
  unhandled_log log;
  make(log.options(GetParam())).run([] {
    std::vector<join_handle<>> handles;
    handles.push_back(spawn([] {
      try {
        wait_for_ever();
      } catch (const operation_cancelled&) {
        throw runtime_error("second");
      }
    }));
    handles.push_back(spawn([] { throw std::logic_error("first"); }));
    EXPECT_THROW(when_all(handles), std::logic_error);
  });
  EXPECT_EQ(log.names(), std::vector<std::string>());
}

TEST_P(WhenAll, OverHandlesTheirCallerMayBeCancelled) {
  run([] {
    std::atomic<int> alive{0};
    auto caller = spawn([&] {
      std::vector<join_handle<>> handles;
      for (int i = 0; i < 3; ++i) handles.push_back(spawn(waits(alive)));
      EXPECT_THROW(when_all(handles), operation_cancelled);
      EXPECT_EQ(alive, 0);
      EXPECT_THROW(this_fiber::check(), operation_cancelled) << "the shield has ended";
    });
    wait_until([&] { return alive == 3; });
    caller.request_stop();
    caller.get();
  });
}

TEST_P(WhenAll, OverHandlesTheirCallersDeadlineEndsThemAll) {
  run([] {
    std::atomic<int> alive{0};
    std::vector<join_handle<>> handles;
    for (int i = 0; i < 3; ++i) handles.push_back(spawn(waits(alive)));
    EXPECT_THROW(timeout(1ms, [&] { when_all(handles); }), deadline_exceeded);
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(WhenAll, OverHandlesOnAPlainThread) {
  std::vector<join_handle<int>> handles;
  for (int i = 0; i < 5; ++i)
    handles.push_back(rt().spawn([i] {
      this_fiber::yield();
      return i;
    }));
  EXPECT_EQ(when_all(handles), (std::vector{0, 1, 2, 3, 4}));
}

}  // namespace
