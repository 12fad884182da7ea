#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/when.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using std::runtime_error;

class WhenAny : public WorkersTest {
 protected:
  std::atomic<int> alive_{0}, begun_{0};

  // Functions: the first never ends by itself, and the others end when `count` of them have begun.
  auto waits() { return test::waits(alive_, begun_); }
  void await_begun(int count) {
    wait_until([&] { return begun_ == count; });
  }
};
ULEXITE_TEST_WORKERS(WhenAny);

TEST_P(WhenAny, GivesThePositionAndTheResultOfTheFirst) {
  run([&] {
    const auto result = when_any(
        waits(),
        [&] {
          await_begun(2);
          return std::string("won");
        },
        waits());
    static_assert(std::is_same_v<decltype(result.value), std::variant<std::monostate, std::string, std::monostate>>);
    EXPECT_EQ(result.index, 1u);
    EXPECT_EQ(std::get<1>(result.value), "won");
    EXPECT_EQ(alive_, 0) << "the losers have ended, their destructors have run";
  });
}

TEST_P(WhenAny, OfOneIsThatOne) {
  run([] {
    const auto result = when_any([] { return std::make_unique<int>(5); });
    EXPECT_EQ(result.index, 0u);
    EXPECT_EQ(*std::get<0>(result.value), 5);
  });
}

TEST_P(WhenAny, ReferencesPassThrough) {
  run([this] {
    std::string mine = "mine";
    auto result = when_any(waits(), [&]() -> std::string& { return mine; });
    ASSERT_EQ(result.index, 1u);
    EXPECT_EQ(&std::get<1>(result.value).get(), &mine);
  });
}

TEST_P(WhenAny, TellsEqualTypesApartByTheirPosition) {
  run([&] {
    for (int winner = 0; winner < 3; ++winner) {
      const auto racer = [&](int self) {
        return [self, winner] {
          if (self != winner) wait_for_ever();
          return self * 10;
        };
      };
      const auto result = when_any(racer(0), racer(1), racer(2));
      EXPECT_EQ(result.index, static_cast<std::size_t>(winner));
      EXPECT_EQ(result.value.index(), static_cast<std::size_t>(winner));
      std::visit([&](int value) { EXPECT_EQ(value, winner * 10); }, result.value);
    }
  });
}

TEST_P(WhenAny, AVoidWinnerIsAMonostate) {
  run([&] {
    const auto result = when_any([&] { await_begun(1); }, waits());
    EXPECT_EQ(result.index, 0u);
    EXPECT_EQ(result.value.index(), 0u);
  });
}

TEST_P(WhenAny, AWinnerThatThrowsThrows) {
  run([&] {
    EXPECT_THROW(when_any(waits(),
                          [&]() -> int {
                            await_begun(1);
                            throw runtime_error("won");
                          }),
                 runtime_error);
    EXPECT_EQ(alive_, 0);
  });
}

TEST_P(WhenAny, ExceptionsOfLosersAreDropped) {
  unhandled_log log;
  make(log.options(GetParam())).run([&] {
    const auto sulks = [&] {
      try {
        ++begun_;
        wait_for_ever();
      } catch (const operation_cancelled&) {
        throw runtime_error("lost");
      }
    };
    const auto result = when_any(
        sulks,
        [&] {
          await_begun(2);
          return 4;
        },
        sulks);
    EXPECT_EQ(std::get<1>(result.value), 4);
  });
  EXPECT_EQ(log.names(), std::vector<std::string>());
}

TEST_P(WhenAny, LosersMayFinishTheirWork) {
  run([&] {
    std::atomic<int> finished{0};
    const auto result = when_any([] { return 1; },
                                 [&] {
                                   wait_until([] { return this_fiber::stop_requested(); });
                                   ++finished;
                                   return 2;
                                 });
    EXPECT_EQ(result.index, 0u);
    EXPECT_EQ(finished, 1);
  });
}

TEST_P(WhenAny, ItsCallerMayBeCancelled) {
  run([&] {
    auto caller = spawn([&] {
      EXPECT_THROW(when_any(waits(), waits()), operation_cancelled);
      EXPECT_EQ(alive_, 0);
    });
    await_begun(2);
    caller.request_stop();
    caller.get();
  });
}

TEST_P(WhenAny, ItsCallersDeadlineEndsItAll) {
  run([&] {
    EXPECT_THROW(timeout(1ms, [&] { when_any(waits(), waits()); }), deadline_exceeded);
    EXPECT_EQ(alive_, 0);
  });
}

TEST_P(WhenAny, Nests) {
  run([&] {
    const auto result = when_any(
        [&] {
          when_any(waits(), waits());
          return 0;
        },
        [&] {
          await_begun(2);
          return std::get<0>(when_any([] { return 7; }).value);
        });
    EXPECT_EQ(result.index, 1u);
    EXPECT_EQ(std::get<1>(result.value), 7);
    EXPECT_EQ(alive_, 0);
  });
}

TEST_P(WhenAny, ARefusedSpawnCancelsThoseBefore) {
  make({.threads = GetParam(), .max_fibers = 3}).run([&] {
    for (int i = 0; i < times(100); ++i) {
      try {
        when_any(waits(), waits(), waits(), waits());
        ADD_FAILURE() << "four fibers where three may live";
      } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), errc::limit_reached);
      }
      EXPECT_EQ(alive_, 0);
    }
  });
}

// Moves once, out of its function, and then refuses.
struct moves_once {
  explicit moves_once(int left) : moves(left) {}
  moves_once(moves_once&& other) : moves(other.moves - 1) {
    if (moves < 0) throw runtime_error("no more moves");
  }
  int moves;
};

TEST_P(WhenAny, AResultThatCannotBeMovedIsAFailureOfTheWinner) {
  run([&] {
    EXPECT_THROW(when_any(waits(),
                          [&] {
                            await_begun(1);
                            return moves_once(0);
                          }),
                 runtime_error);
    EXPECT_EQ(alive_, 0);
  });
}

TEST_P(WhenAny, ManyMayWinAtTheSameTime) {
  run([&] {
    for (int i = 0; i < times(500); ++i) {
      const auto racer = [](int self) {
        return [self] {
          this_fiber::yield();
          return self;
        };
      };
      const auto result = when_any(racer(0), racer(1), racer(2), racer(3));
      std::visit([&](int value) { EXPECT_EQ(static_cast<std::size_t>(value), result.index); }, result.value);
    }
  });
}

}  // namespace
