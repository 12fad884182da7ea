#include "support/crowd.hpp"
#include "support/waiting.hpp"

#include <ulexite/sync/call_once.hpp>

#include <memory>
#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CallOnce : public WorkersTest {};
ULEXITE_TEST_WORKERS(CallOnce);

constinit once_flag at_static_initialisation;  // compiles

TEST_P(CallOnce, CallsOnceAndAllSeeWhatItWrote) {
  for (int round = 0; round < times(100); ++round) {
    once_flag flag;
    int calls = 0;  // not atomic
    const auto work = [&] {
      call_once(flag, [&] {
        this_fiber::yield();
        if (round % 10 == 0) this_fiber::sleep_for(10us);
        ++calls;
      });
      EXPECT_EQ(calls, 1);
    };
    crowd(rt(), 6, 2, work).join();
    EXPECT_EQ(calls, 1);
  }
}

TEST_P(CallOnce, AfterAnExceptionAnotherTries) {
  once_flag flag;
  std::atomic<int> tries{0}, failures{0};
  bool made = false;  // not atomic
  const auto work = [&] {
    try {
      call_once(flag, [&] {
        this_fiber::yield();
        if (++tries <= 3) throw std::runtime_error("not yet");
        made = true;
      });
      EXPECT_TRUE(made);
    } catch (const std::runtime_error&) {
      ++failures;
    }
  };
  crowd(rt(), 6, 2, work).join();
  EXPECT_EQ(tries, 4);
  EXPECT_EQ(failures, 3);
}

TEST_P(CallOnce, ByItsOwnInitialiserIsAUsageError) {
  auto check = [] {
    once_flag flag, other;
    int calls = 0;
    call_once(flag, [&] {
      EXPECT_THROW(call_once(flag, [&] { ++calls; }), usage_error);
      call_once(other, [&] { ++calls; });
    });
    EXPECT_EQ(calls, 1);
    call_once(flag, [&] { ++calls; });
    EXPECT_EQ(calls, 1);

    once_flag again;
    EXPECT_THROW(call_once(again, [&] { call_once(again, [] {}); }), usage_error);
    call_once(again, [&] { ++calls; });
    EXPECT_EQ(calls, 2) << "the failed one left the flag as it was";
  };
  run(check);
  check();
}

TEST_P(CallOnce, PassesItsArgumentsOn) {
  struct counter {
    int value = 0;
    void add(std::unique_ptr<int> by) { value += *by; }
  };
  once_flag flag;
  counter sum;
  auto by = std::make_unique<int>(4);
  call_once(flag, &counter::add, sum, std::move(by));
  EXPECT_EQ(sum.value, 4);
  by = std::make_unique<int>(5);
  call_once(flag, &counter::add, sum, std::move(by));
  EXPECT_EQ(sum.value, 4);
  EXPECT_TRUE(by) << "moved from only if called";
  int into = 0;
  call_once(at_static_initialisation, [](int& out) { out = 1; }, into);
  call_once(at_static_initialisation, [](int& out) { out = 2; }, into);
  EXPECT_LE(into, 1);
}

}  // namespace
