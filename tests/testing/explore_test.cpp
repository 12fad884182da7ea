#include <ulexite.hpp>
#include <ulexite/runtime/worker/scheduler.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
namespace ut = ulexite::testing;
using ut::choose;
using ut::expect;
using ut::explore;
using ut::find_failure;

// Two fibers add one to a number, each in two steps.
void lose_an_update() {
  mutex m;
  int number = 0;
  const auto read = [&] {
    const std::lock_guard lock(m);
    return number;
  };
  const auto add_one = [&] {
    const int seen = read();
    const std::lock_guard lock(m);
    number = seen + 1;
  };
  task_group all;
  all.spawn(add_one);
  all.spawn(add_one);
  all.wait();
  expect(number == 2, "two updates");
}

void cross_locks() {
  mutex a, b;
  task_group all;
  all.spawn([&] {
    const std::lock_guard first(a);
    const std::lock_guard second(b);
  });
  all.spawn([&] {
    const std::lock_guard first(b);
    const std::lock_guard second(a);
  });
  all.wait();
}

const std::vector<std::string> strategies{"mixed", "random", "pct:2", "pct:3", "exhaustive:2"};

TEST(Explore, EachStrategyFindsALostUpdate) {
  for (const std::string& strategy : strategies) {
    const auto found = find_failure({.strategy = strategy}, lose_an_update);
    ASSERT_TRUE(found.failure) << strategy;
    EXPECT_EQ(found.failure->reason, "expected: two updates");
    EXPECT_EQ(found.failure->number, found.schedules);
  }
}

TEST(Explore, EachStrategyFindsADeadlockAndTellsWhoWaitsForWhat) {
  for (const std::string& strategy : strategies) {
    const auto found = find_failure({.strategy = strategy}, cross_locks);
    ASSERT_TRUE(found.failure) << strategy;
    EXPECT_EQ(found.failure->reason, "deadlock: 3 fibers wait, no fiber can run, and no timer is set");
    const std::string& report = found.failure->report;
    for (const char* const word : {"fiber #1 \"main\"", "circle: fiber #", "explore_test.cpp:", "waits 0 ms for mutex",
                                   "holds 1 lock", "ULEXITE_SCHEDULE=list:"})
      EXPECT_NE(report.find(word), std::string::npos) << word << " is not in\n" << report;
  }
}

TEST(Explore, RunsThatDoNotFailAreCounted) {
  const auto all = explore({.schedules = 500}, [] {
    mutex m;
    task_group both;
    for (int i = 0; i < 2; ++i) both.spawn([&] { const std::lock_guard lock(m); });
    both.wait();
  });
  EXPECT_EQ(all.schedules, 500u);
  EXPECT_FALSE(all.failure);
  EXPECT_FALSE(all.exhausted);
  EXPECT_GT(all.steps, 500u);
}

TEST(Explore, ExhaustiveComesToAnEndAndTriesEachOrder) {
  std::set<std::string> orders;
  const auto all = explore({.schedules = 1'000'000, .strategy = "exhaustive:3"}, [&] {
    std::string order;
    task_group both;
    for (const char who : {'a', 'b', 'c'}) both.spawn([&, who] { order += who; });
    both.wait();
    orders.insert(order);
  });
  EXPECT_TRUE(all.exhausted);
  EXPECT_EQ(orders.size(), 6u);
}

TEST(Explore, RoundRobinGivesEachFiberItsTurn) {
  std::set<std::string> orders;
  const auto all = explore({.schedules = 1000, .strategy = "round_robin"}, [&] {
    std::string order;
    task_group both;
    for (const char who : {'a', 'b'})
      both.spawn([&, who] {
        for (int i = 0; i < 8; ++i) order += who, ut::point();
      });
    both.wait();
    orders.insert(order);
  });
  EXPECT_TRUE(all.exhausted);
  EXPECT_TRUE(orders.contains("aaaaaaaabbbbbbbb"));
  EXPECT_GT(orders.size(), 2u);
}

TEST(Explore, AFailureIsRepeatedByItsLine) {
  const auto found = find_failure({.shorten = false}, lose_an_update);
  ASSERT_TRUE(found.failure);
  for (int i = 0; i < 100; ++i) {
    const auto again = find_failure({.replay = found.failure->replay}, lose_an_update);
    ASSERT_TRUE(again.failure);
    ASSERT_EQ(again.schedules, 1u);
    ASSERT_EQ(again.digest, found.failure->digest);
    ASSERT_EQ(again.failure->reason, found.failure->reason);
  }
}

TEST(Explore, TheEnvironmentRepeatsARun) {
  const auto found = find_failure({}, lose_an_update);
  ASSERT_TRUE(found.failure);
  ::setenv("ULEXITE_SCHEDULE", found.failure->replay.c_str(), 1);
  const auto again = find_failure({}, lose_an_update);
  ::unsetenv("ULEXITE_SCHEDULE");
  EXPECT_EQ(again.schedules, 1u);
  ASSERT_TRUE(again.failure);
}

TEST(Explore, AScheduleOfAnotherTestIsRefused) {
  const auto why = [](const char* replay) -> std::string {
    try {
      find_failure({.replay = replay}, [] { static_cast<void>(choose(2) + choose(3)); });
      return {};
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
  };
  EXPECT_EQ(why("list:0=1,1=2"), "");
  EXPECT_TRUE(why("list:1=1,50=3").ends_with("names choice 50, but the run had 2 choices, counted from 0"));
  EXPECT_TRUE(why("list:0=1,1=9").ends_with("takes 9 at choice 1, which had 0 to 2 only"));
  EXPECT_TRUE(find_failure({.replay = "list:50=3"}, [] { expect(false, "it fails anyway"); }).failure);
}

TEST(Explore, TheScheduleIsShortened) {
  const auto body = [] {
    channel<int> noise(1);
    task_group all;
    for (int i = 0; i < 3; ++i)
      all.spawn([&] {
        for (int k = 0; k < 10; ++k) static_cast<void>(noise.size());
      });
    lose_an_update();
    all.wait();
  };
  const auto whole = find_failure({.strategy = "random", .shorten = false}, body);
  const auto shortened = find_failure({.strategy = "random"}, body);
  ASSERT_TRUE(whole.failure && shortened.failure);
  EXPECT_GT(whole.failure->switches, 10u);
  constexpr std::size_t least = detail::migrating ? 5 : 4;  // none of which can be left out
  EXPECT_LE(shortened.failure->switches, least) << shortened.failure->replay;
  EXPECT_EQ(shortened.failure->digest, whole.failure->digest);  // of the run as it was found
}

TEST(Explore, AnExceptionOfTheFunctionFailsTheRun) {
  const auto found = find_failure({}, [] { throw std::runtime_error("no such cache"); });
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->reason, "an exception of the function: no such cache");
  EXPECT_EQ(found.schedules, 1u);
}

TEST(Explore, AnExceptionThatNobodyTakesFailsTheRun) {
  const auto found = find_failure({}, [] {
    spawn([] { throw std::runtime_error("lost"); }).detach();
    this_fiber::yield();
  });
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->reason, "an exception that no fiber took: lost");
}

TEST(Explore, AFiberThatOutlivesTheFunctionIsALeak) {
  const auto body = [] { spawn([] { this_fiber::sleep_for(1h); }).detach(); };
  const auto found = find_failure({}, body);
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->reason, "leak: the function has returned, and 1 fiber still lives");
  EXPECT_FALSE(find_failure({.schedules = 20, .leaks_fail = false}, body).failure);
}

TEST(Explore, ARunWithoutAnEndFails) {
  const auto found = find_failure({.max_steps = 1000}, [] {
    for (;;) this_fiber::yield();
  });
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->reason, "no end after 1000 steps");
}

TEST(Explore, ThrowsTheReport) {
  try {
    explore(cross_locks);
    FAIL() << "no failure";
  } catch (const ut::schedule_failed& failed) {
    EXPECT_EQ(failed.what(), failed.failure().report);
    EXPECT_NE(failed.failure().report.find("deadlock"), std::string::npos);
  }
}

TEST(Explore, AnAssertionOfGoogleTestFailsTheRun) {
  const auto found = find_failure({}, [] {
    int number = 0;
    task_group both;
    both.spawn([&] { ASSERT_EQ(number, 0) << "the other came first"; });
    both.spawn([&] { number = 1; });
    both.wait();
  });
  ASSERT_TRUE(found.failure);
  EXPECT_NE(found.failure->reason.find("the other came first"), std::string::npos);
  EXPECT_NE(found.failure->reason.find("explore_test.cpp:"), std::string::npos);
}

TEST(Explore, WrongOptionsAreRefused) {
  const auto nothing = [] {};
  for (const char* const strategy : {"", "pct", "pct:", "pct:0", "pct:x", "exhaustive:-1", "exhaustive:2:3", "dfs"})
    EXPECT_THROW(find_failure({.strategy = strategy}, nothing), std::invalid_argument) << strategy;
  for (const char* const replay : {"random", "list:1", "list:1=", "list:1=2,,", "list:2=1,1=1", "list:1=2x"})
    EXPECT_THROW(find_failure({.replay = replay}, nothing), std::invalid_argument) << replay;
  EXPECT_THROW(find_failure({.schedules = 0}, nothing), std::invalid_argument);
  EXPECT_THROW(find_failure({.slowness = -1ns}, nothing), std::invalid_argument);
  EXPECT_THROW(find_failure({.network = {.latency = -1ns}}, nothing), std::invalid_argument);
  EXPECT_THROW(find_failure({.network = {.jitter = -1ns}}, nothing), std::invalid_argument);
  EXPECT_THROW(ut::fail("outside"), usage_error);
  EXPECT_THROW(expect(false, "outside"), usage_error);
  EXPECT_EQ(choose(5), 0u);
  runtime rt;
  rt.run([&] { EXPECT_THROW(explore(nothing), usage_error); });
}

TEST(Explore, ADescriptorOfTheKernelIsRefused) {
  const auto found = find_failure({}, [] {
    const int of_the_kernel = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    const std::unique_ptr<const int, void (*)(const int*)> closing(&of_the_kernel, [](const int* fd) { ::close(*fd); });
    net::wait_fd(of_the_kernel, net::interest::read);
  });
  ASSERT_TRUE(found.failure);
  EXPECT_NE(found.failure->reason.find("Operation not supported (a run of ulexite::testing has stream sockets only"),
            std::string::npos)
      << found.failure->reason;
}

TEST(Explore, WhatARunDoesNotHaveIsRefusedWithWords) {
  const auto why = [](void (*body)()) { return find_failure({.leaks_fail = false}, body).failure->report; };
  for (const auto& body : {+[] { static_cast<void>(os::output_of({.arguments = {"true"}})); },
                           +[] { static_cast<void>(os::process({.arguments = {"true"}}).wait()); },
                           +[] { net::udp_socket(net::endpoint::ip("127.0.0.1", 0)); }}) {
    const std::string report = why(body);
    EXPECT_NE(report.find("a run of ulexite::testing has stream sockets only"), std::string::npos) << report;
  }
  const std::string report = why([] { static_cast<void>(os::signal_set{SIGUSR2}.receive()); });
  EXPECT_NE(report.find("In a run no signal comes, and no other thread counts.\n"), std::string::npos) << report;
  EXPECT_EQ(find_failure({}, cross_locks).failure->report.find("no signal"), std::string::npos);
}

TEST(Explore, ASkippedTestHasNoOtherRun) {
  int runs = 0;
  ::testing::TestPartResultArray results;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    explore([&] {
      ++runs;
      GTEST_SKIP() << "not today";
    });
  }
  EXPECT_EQ(runs, 1);
  ASSERT_EQ(results.size(), 1);
  EXPECT_TRUE(results.GetTestPartResult(0).skipped());
  const std::string_view said = results.GetTestPartResult(0).message();
  EXPECT_TRUE(said.starts_with("not today")) << said;  // newer versions of GoogleTest end it with a line
}

TEST(Explore, BlockingCallsHappenOnTheSpot) {
  explore({.schedules = 100}, [] {
    const auto self = std::this_thread::get_id();
    EXPECT_EQ(blocking([] { return std::this_thread::get_id(); }), self);
    EXPECT_EQ(block_in_place([] { return std::this_thread::get_id(); }), self);
  });
}

TEST(Explore, AnotherRuntimeRunsBesideIt) {
  std::atomic<bool> stop{false};
  std::thread beside([&] {
    runtime rt({.threads = 2});
    rt.run([&] {
      mutex m;
      channel<int> ch(2);
      int sum = 0;
      while (!stop.load()) {
        task_group all;
        for (int i = 0; i < 4; ++i)
          all.spawn([&] {
            ch.send(1);
            const std::lock_guard lock(m);
            sum += *ch.receive();
          });
        all.wait();
      }
      EXPECT_EQ(sum % 4, 0);
    });
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(find_failure({.seed = 1u + i}, cross_locks).failure);
  stop.store(true);
  beside.join();
}

TEST(Explore, UnderNoSuspendNoOtherFiberRuns) {
  explore({.schedules = 300}, [] {
    int inside = 0;
    channel<int> ch(8);
    task_group all;
    for (int i = 0; i < 3; ++i)
      all.spawn([&] {
        const no_suspend_scope step;
        EXPECT_EQ(++inside, 1);
        int value = 1;
        static_cast<void>(ch.try_send(value));
        --inside;
      });
    all.wait();
  });
}

TEST(Explore, ATheftOfABranchIsAChoice) {
  std::set<std::string> orders;
  explore({.schedules = 2'000}, [&] {
    std::string order;
    parallel_invoke([&] { ut::point(), order += 'a', ut::point(), order += 'A'; },
                    [&] { order += 'b', ut::point(), order += 'B'; });
    orders.insert(order);
  });
  EXPECT_TRUE(orders.contains("aAbB"));
  EXPECT_TRUE(orders.contains("bBaA"));
  EXPECT_TRUE(orders.contains("abAB"));
  std::set<std::size_t> pieces;
  explore({.schedules = 200}, [&] {
    std::set<std::uint64_t> by;
    std::vector<int> values(1000);
    parallel_for(0, 1000, [&](int i) { by.insert(this_fiber::id()), ++values[static_cast<std::size_t>(i)]; });
    for (const int each : values) ASSERT_EQ(each, 1);
    pieces.insert(by.size());
  });
  EXPECT_GT(pieces.size(), 1u);
}

TEST(Explore, StrandsAndPinnedFibersAreExploredToo) {
  std::set<int> seen;
  explore({.schedules = 500}, [&] {
    concurrent_context own;
    int number = 0;
    wait_group all;
    all.add(2);
    for (int i = 0; i < 2; ++i)
      own.spawn([&] {
           const int before = number;
           ut::point();
           number = before + 1;
           all.done();
         })
          .detach();
    all.wait();
    seen.insert(number);
  });
  EXPECT_EQ(seen, (std::set<int>{1, 2}));
}

}  // namespace
