#include "support/crowd.hpp"
#include "support/kinds_fixture.hpp"
#include "support/waiting.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/latch.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <memory>

// What is promised by all that is closed at first, and lets every wait pass once it is open.
namespace {

using namespace ulexite;
using namespace ulexite::test;

// Each opens at the last of `turns` calls of open().
struct event_gate : ulexite::event {
  static constexpr const char* name = "event";
  static constexpr int turns = 1;
  void open() { set(); }
};
struct latch_gate : latch {
  static constexpr const char* name = "latch";
  static constexpr int turns = 2;
  latch_gate() : latch(turns) {}
  void open() { count_down(); }
};
struct wait_group_gate : wait_group {
  static constexpr const char* name = "wait_group";
  static constexpr int turns = 2;
  wait_group_gate() : wait_group(turns) {}
  void open() { done(); }
};

class Gates : public KindsTest<event_gate, latch_gate, wait_group_gate> {
 protected:
  static void open_wide(auto& gate) {
    for (int i = 0; i < gate.turns; ++i) gate.open();
  }
};
ULEXITE_TEST_KINDS(Gates);

TEST_P(Gates, WakeAllFibersAndThreadsThatWait) {
  for_kind([&]<class Gate> {
    Gate gate;
    std::atomic<int> begun{0}, passed{0};
    const auto wait = [&] {
      ++begun;
      gate.wait();
      ++passed;
    };
    crowd all(rt(), 5, 5, wait);
    wait_until([&] { return begun == 10; });
    EXPECT_EQ(passed, 0);
    open_wide(gate);
    all.join();
    EXPECT_EQ(passed, 10);
  });
}

TEST_P(Gates, WaitNoLongerThanAllowed) {
  const auto check = []<class Gate> {
    Gate gate;
    const auto start = ulexite::steady_clock::now();
    EXPECT_FALSE(gate.wait_for(2ms));
    EXPECT_GE(ulexite::steady_clock::now() - start, 2ms);
    EXPECT_FALSE(gate.wait_for(0s));
    EXPECT_FALSE(gate.wait_until(ulexite::steady_clock::now() - 1s));
    open_wide(gate);
    EXPECT_TRUE(gate.wait_for(0s));
    EXPECT_TRUE(gate.wait_until(ulexite::steady_clock::time_point::max()));
  };
  run_for_kind(check);
  for_kind(check);
}

// The memory is freed as soon as the wait returns: what opened the gate must not touch it after that.
TEST_P(Gates, MayBeDestroyedAsSoonAsTheWaitReturns) {
  run_for_kind([]<class Gate> {
    for (int i = 0; i < times(5000); ++i) {
      auto gate = std::make_unique<Gate>();
      if (i % 4 == 0) EXPECT_FALSE(gate->wait_for(0s));
      for (int k = 0; k < Gate::turns; ++k) spawn([g = gate.get()] { g->open(); }).detach();
      if (i % 2 == 0) this_fiber::yield();
      if (i % 3 == 0) {
        while (!gate->wait_for(1us)) {
        }
      } else {
        gate->wait();
      }
    }
  });
}

// The same with others' waits under way.
TEST_P(Gates, MayBeDestroyedAsSoonAsTheLastOfSeveralWaitsReturns) {
  for_kind([&]<class Gate> {
    for (int i = 0; i < times(1000); ++i) {
      auto gate = std::make_unique<Gate>();
      EXPECT_FALSE(gate->wait_for(0s));
      auto other = rt().spawn([g = gate.get()] { return g->wait_for(1us); });
      auto end = rt().spawn([g = gate.get()] { open_wide(*g); });
      while (!gate->wait_for(i % 2 == 0 ? 0us : 1us)) {
      }
      other.join();
      gate.reset();
      end.join();
    }
  });
}

}  // namespace
