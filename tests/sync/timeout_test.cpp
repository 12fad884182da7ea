#include "support/cancellation.hpp"
#include "support/runtime_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Timeout : public WorkersTest {
 protected:
  // In fibers and on plain threads.
  template <class F>
  void everywhere(F body) {
    run(body);
    body();
  }
};
ULEXITE_TEST_WORKERS(Timeout);

TEST_P(Timeout, GivesWhatItsFunctionGives) {
  everywhere([] {
    EXPECT_EQ(timeout(1h, [] { return 5; }), 5);
    static_assert(std::is_void_v<decltype(timeout(1h, [] {}))>);
    timeout(1h, [] {});
    int there = 6;
    EXPECT_EQ(&timeout(1h, [&]() -> int& { return there; }), &there);
    EXPECT_EQ(*timeout(1h, [] { return std::make_unique<int>(7); }), 7);
    EXPECT_THROW(timeout(1h, [] { throw std::runtime_error("its own"); }), std::runtime_error);
    EXPECT_EQ(timeout(0s, [] { return 8; }), 8) << "what meets no cancellation point is not cancelled";
    EXPECT_THROW(timeout(0s, [] { this_fiber::check(); }), deadline_exceeded);
    this_fiber::check();
  });
}

TEST_P(Timeout, Nests) {
  everywhere([] {
    EXPECT_EQ(timeout(1h,
                      [] {
                        EXPECT_THROW(timeout(1us, [] { wait_for_ever(); }), deadline_exceeded);
                        this_fiber::check();
                        this_fiber::sleep_for(1us);
                        return 2;
                      }),
              2);
    EXPECT_THROW(timeout(100us,
                         [] {
                           EXPECT_THROW(timeout(1h, [] { wait_for_ever(); }), deadline_exceeded);
                           this_fiber::sleep_for(0s);
                           ADD_FAILURE() << "the outer one is over";
                         }),
                 deadline_exceeded);
  });
}

TEST_P(Timeout, TryForGivesAResultOrNothing) {
  everywhere([] {
    EXPECT_EQ(try_for(1h, [] { return 5; }), std::optional(5));
    EXPECT_EQ(**try_for(1h, [] { return std::make_unique<int>(7); }), 7);
    EXPECT_TRUE(try_for(1h, [] {}));
    EXPECT_FALSE(try_for(1us, [] { wait_for_ever(); }));
    EXPECT_EQ(try_for(std::chrono::steady_clock::now(), [] { return wait_for_ever(), 5; }), std::nullopt);
    EXPECT_THROW((void)try_for(1h, [] { throw std::runtime_error("its own"); }), std::runtime_error);
    EXPECT_THROW((void)try_for(1h, [] { timeout(1us, [] { wait_for_ever(); }); }), deadline_exceeded)
        << "a deadline that the function set";
    this_fiber::check();
  });
}

TEST_P(Timeout, TryForInALoopEndsWithTheCallersDeadline) {
  everywhere([] {
    int tries = 0;
    const auto until_it_is_done = [&] {
      while (!try_for(1ms, [] { wait_for_ever(); })) ++tries;
    };
    EXPECT_THROW(timeout(200ms, until_it_is_done), deadline_exceeded);
    EXPECT_GE(tries, 1);
    EXPECT_LE(tries, 200);
    EXPECT_THROW(timeout(0s, until_it_is_done), deadline_exceeded);
  });
}

// The value and the deadline race for one wait: no value is lost or doubled.
TEST_P(Timeout, RacesWithAValue) {
  run([] {
    for (int i = 0; i < times(1000); ++i) {
      channel<int> values;
      std::atomic<int> received{0}, sent{0};
      auto receiver = spawn([&] {
        timeout(std::chrono::microseconds(i % 40), [&] {
          values.receive();
          ++received;
        });
      });
      auto sender = spawn([&] {
        timeout(std::chrono::microseconds(i % 30), [&] {
          values.send(1);
          ++sent;
        });
      });
      for (auto* each : {&receiver, &sender}) try {
          each->get();
        } catch (const deadline_exceeded&) {
        }
      EXPECT_EQ(sent, received);
    }
  });
}

}  // namespace
