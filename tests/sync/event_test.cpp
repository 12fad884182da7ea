#include "support/waiting.hpp"

#include <ulexite/sync/event.hpp>

#include <thread>

// What it has in common with others is in gates_test.cpp.
namespace {

using namespace ulexite;
using namespace ulexite::test;

[[maybe_unused]] constinit event made_at_compile_time;  // compiles

class Event : public WorkersTest {};
ULEXITE_TEST_WORKERS(Event);

TEST_P(Event, LetsWaitsPassWhileItIsSet) {
  auto check = [] {
    ulexite::event gate;
    EXPECT_FALSE(gate.is_set());
    EXPECT_FALSE(gate.wait_for(0s));
    gate.set();
    gate.set();
    EXPECT_TRUE(gate.is_set());
    gate.wait();
    gate.wait();
    EXPECT_TRUE(gate.wait_for(0s));
    gate.reset();
    gate.reset();
    EXPECT_FALSE(gate.is_set());
    EXPECT_FALSE(gate.wait_for(0s));
    gate.set();
    gate.wait();
    ulexite::event open(true);
    open.wait();
  };
  run(check);
  check();
}

// The set has ended their waits, even if they run only after the reset.
TEST_P(Event, ThoseWhoWaitedPassInSpiteOfAReset) {
  ulexite::event gate;
  for (int round = 0; round < times(50); ++round) {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 4; ++i) all.push_back(spawn_until_it_waits(rt(), [&] { gate.wait(); }));
    gate.set();
    gate.reset();
    for (auto& each : all) each.get();
    EXPECT_FALSE(gate.is_set());
  }
}

// Each turn is passed on by set, and taken by wait and reset.
TEST_P(Event, OrdersWhatWasWrittenBeforeTheSet) {
  ulexite::event mine(true), yours;
  long turns = 0;  // not atomic
  const long rounds = times(3000);
  std::thread thread([&] {
    for (long i = 0; i < rounds; ++i) {
      mine.wait();
      mine.reset();
      EXPECT_EQ(turns++, 2 * i);
      yours.set();
    }
  });
  run([&] {
    for (long i = 0; i < rounds; ++i) {
      yours.wait();
      yours.reset();
      EXPECT_EQ(turns++, 2 * i + 1);
      mine.set();
    }
  });
  thread.join();
}

// A set of what is set already counts too: the consumer resets, then looks; what it does not see is followed by a set.
TEST_P(Event, NoSetIsLostToAReset) {
  ulexite::event news;
  std::atomic<long> produced{0};
  const long total = times(20000);
  auto producer = rt().spawn([&] {
    for (long i = 0; i < total; ++i) {
      produced.fetch_add(1, std::memory_order_relaxed);
      news.set();
      if (i % 64 == 0) this_fiber::yield();
    }
  });
  run([&] {
    long seen = 0;
    while (seen < total) {
      news.wait();
      news.reset();
      seen = produced.load(std::memory_order_relaxed);
    }
  });
  producer.get();
}

TEST_P(Event, TimeOutsRaceWithSets) {
  ulexite::event gate;
  std::atomic<int> left{8};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(rt().spawn([&, i] {
      for (int k = 0; k < times(300); ++k) gate.wait_for(std::chrono::microseconds((i * 7 + k) % 50));
      --left;
    }));
  while (left > 0) {
    gate.set();
    gate.reset();
    this_fiber::yield();
  }
  for (auto& each : all) each.get();
  auto waiter = spawn_until_it_waits(rt(), [&] { gate.wait(); });
  gate.set();
  waiter.get();
}

}  // namespace
