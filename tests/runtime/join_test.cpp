#include "support/waiting.hpp"

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/when.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using testing::KilledBySignal;

class Join : public WorkersTest {};
ULEXITE_TEST_WORKERS(Join);

TEST_P(Join, WaitsForTheEnd) {
  run([] {
    std::atomic<bool> go{false};
    bool ended = false;  // not atomic: the join orders it
    auto handle = spawn([&] {
      wait_until([&] { return go.load(); });
      ended = true;
    });
    EXPECT_TRUE(handle.joinable());
    EXPECT_FALSE(handle.done());
    go = true;
    handle.join();
    EXPECT_TRUE(ended);
    EXPECT_TRUE(handle.done());
    handle.join();
    handle.get();
    EXPECT_FALSE(handle.joinable());
    EXPECT_FALSE(handle.done());
  });
}

TEST_P(Join, WaitsNoLongerThanAllowed) {
  run([] {
    std::atomic<bool> go{false};
    auto handle = spawn([&] { wait_until([&] { return go.load(); }); });
    const auto start = ulexite::steady_clock::now();
    EXPECT_FALSE(handle.wait_for(5ms));
    EXPECT_GE(ulexite::steady_clock::now() - start, 5ms);
    EXPECT_FALSE(handle.wait_for(-1s));
    EXPECT_FALSE(handle.wait_until(ulexite::steady_clock::now() - 1s));
    EXPECT_FALSE(handle.wait_until(ulexite::steady_clock::time_point{}));
    go = true;
    EXPECT_TRUE(handle.wait_for(std::chrono::hours(1'000'000)));
    EXPECT_TRUE(handle.wait_until(ulexite::steady_clock::time_point::max()));
  });
}

TEST_P(Join, NeverIsALimitInAnyUnit) {
  run([] {
    const std::chrono::time_point<ulexite::steady_clock, std::chrono::hours> never(std::chrono::hours::max());
    EXPECT_TRUE(spawn([] { this_fiber::sleep_for(1ms); }).wait_until(never));
    EXPECT_TRUE(spawn([] { this_fiber::sleep_for(1ms); }).wait_for(std::chrono::hours::max()));
    const auto before_the_epoch = ulexite::steady_clock::time_point(-1ns);
    std::atomic<bool> go{false};
    auto handle = spawn([&] { wait_until([&] { return go.load(); }); });
    EXPECT_FALSE(handle.wait_until(before_the_epoch));
    go = true;
    handle.join();
  });
}

// The end and the limit race; either way the answer is right and the handle stays good.
TEST_P(Join, TimeOutsRaceWithTheEnd) {
  run([] {
    for (int i = 0; i < times(2000); ++i) {
      auto handle = spawn([i] {
        if (i % 2 == 0) this_fiber::yield();
        return i;
      });
      const bool in_time = handle.wait_for(std::chrono::microseconds(i % 50));
      if (in_time) EXPECT_TRUE(handle.done());
      EXPECT_EQ(handle.get(), i);
    }
  });
}

TEST_P(Join, RethrowsFromGetOnly) {
  run([] {
    auto handle = spawn([]() -> int { throw std::runtime_error("wrong"); });
    handle.join();
    EXPECT_TRUE(handle.wait_for(0s));
    EXPECT_THROW(handle.get(), std::runtime_error);
    EXPECT_FALSE(handle.joinable());
  });
}

TEST_P(Join, WithoutAFiberIsAUsageError) {
  join_handle<int> none;
  EXPECT_FALSE(none.joinable());
  EXPECT_FALSE(none.done());
  EXPECT_FALSE(none.request_stop());
  EXPECT_EQ(none.id(), 0u);
  EXPECT_THROW(none.join(), usage_error);
  EXPECT_THROW(none.get(), usage_error);
  EXPECT_THROW(none.wait_for(1s), usage_error);
  EXPECT_THROW(none.wait_until(ulexite::steady_clock::now()), usage_error);
  none.detach();
}

TEST_P(Join, HandlesMove) {
  run([] {
    auto first = spawn([] { return 1; }), second = spawn([] { return 2; });
    join_handle<int> moved = std::move(first);
    EXPECT_FALSE(first.joinable());  // NOLINT(bugprone-use-after-move)
    moved = std::move(second);
    EXPECT_EQ(moved.get(), 2);
    auto third = spawn([] { return 3; });
    auto& same = third;
    third = std::move(same);
    EXPECT_EQ(third.get(), 3);
  });
}

TEST_P(Join, ADroppedFiberGoesOn) {
  std::atomic<int> ended{0};
  run([&] {
    std::atomic<bool> go{false};
    for (int i = 0; i < 10; ++i) {
      auto handle = spawn([&] {
        wait_until([&] { return go.load(); });
        ++ended;
      });
      if (i % 2 == 0) handle.detach();
    }
    go = true;
    wait_until([&] { return ended == 10; });
  });
  EXPECT_EQ(ended, 10);
}

TEST_P(Join, OnPlainThreadsAndInOtherFibers) {
  runtime& shared = rt();
  for (int i = 0; i < times(300); ++i) {
    auto handle = shared.spawn([i] { return i; });
    std::thread other([&] { EXPECT_EQ(handle.get(), i); });
    other.join();
    auto second = shared.spawn([i] { return i + 1; });
    EXPECT_EQ(shared.spawn([&] { return second.get(); }).get(), i + 1);
  }
}

TEST_P(Join, ResultsAndExceptionsOutliveTheRuntime) {
  auto value = rt().spawn([] { return std::make_unique<int>(3); });
  auto thrown = rt().spawn([] { throw std::runtime_error("late"); });
  auto dropped = rt().spawn([] { return std::string(1000, 'x'); });
  end(rt(), shutdown_mode::drain);
  EXPECT_TRUE(value.done());
  EXPECT_NE(value.id(), 0u);
  EXPECT_TRUE(value.request_stop());
  EXPECT_EQ(*value.get(), 3);
  EXPECT_THROW(thrown.get(), std::runtime_error);
}

TEST_F(RuntimeTest, HandlesOutliveADestroyedRuntime) {
  join_handle<std::string> text;
  join_handle<> late;
  std::vector<std::string> reported;
  {
    runtime rt({.threads = 2, .on_unhandled_exception = [&](const unhandled_exception& what) {
                  reported.emplace_back(what.fiber_name);
                }});
    text = rt.spawn([] { return std::string("still here"); });
    late = rt.spawn({.name = "late"}, [] { throw 1; });
  }
  EXPECT_EQ(text.get(), "still here");
  EXPECT_TRUE(reported.empty());
  late = {};
  EXPECT_EQ(reported, std::vector<std::string>{"late"});
}

// A runtime ends, and another's fiber is joined right then by the same thread: its wait must not end early.
TEST_F(RuntimeTest, TheEndOfARuntimeLeavesNothingForTheThreadsNextWait) {
  runtime& lasting = make(1);
  for (int i = 0; i < times(1000); ++i) {
    {
      runtime brief({.threads = 2});
      brief.spawn([] { this_fiber::yield(); }).detach();
    }
    auto handle = lasting.spawn([] {
      for (int k = 0; k < 20; ++k) this_fiber::yield();
      return 1;
    });
    handle.join();
    ASSERT_TRUE(handle.done()) << "round " << i;
    ASSERT_EQ(handle.get(), 1);
  }
}

class Unhandled : public RuntimeTest {
 protected:
  runtime& make_with_handler(std::size_t threads = 2) {
    return make({.threads = threads, .on_unhandled_exception = [this](const unhandled_exception& what) {
                   try {
                     std::rethrow_exception(what.exception);
                   } catch (const std::exception& e) {
                     last_ = std::string(what.fiber_name) + ": " + e.what();
                   } catch (...) {
                     last_ = std::string(what.fiber_name) + ": something";
                   }
                   ++reports_;
                 }});
  }
  std::atomic<int> reports_{0};
  std::string last_;
};

TEST_F(Unhandled, ExceptionsOfDroppedFibersAreReportedWithTheName) {
  runtime& rt = make_with_handler();
  rt.run([] {
    spawn({.name = "loser"}, [] { throw std::runtime_error("lost"); }).detach();
    auto kept = spawn([] { throw 5; });
    EXPECT_THROW(kept.get(), int);
  });
  wait_until([&] { return reports_ == 1; });
  EXPECT_EQ(last_, "loser: lost");
  {
    auto joined = rt.spawn([] { throw 7; });
    joined.join();
    EXPECT_EQ(reports_, 1);
  }
  EXPECT_EQ(reports_, 2);
  EXPECT_EQ(last_, ": something");
}

TEST_F(Unhandled, AReportSaysWhichFiberItWasAndWhereItBegan) {
  std::vector<std::uint64_t> numbers, reported;
  std::string file;
  std::uint32_t line = 0, expected = 0;
  const void* code = nullptr;
  {
    runtime rt({.threads = 1, .on_unhandled_exception = [&](const unhandled_exception& what) {
                  reported.push_back(what.fiber_id);
                  if (what.file) file = what.file, line = what.line;
                  if (what.code) code = what.code;
                }});
    const auto fail = [&](int) { numbers.push_back(this_fiber::id()), throw 1; };
    rt.run([&] {
      expected = std::source_location::current().line() + 1;
      spawn([&] { fail(0); }).detach();
      spawn(fail, 0).detach();
    });
    rt.shutdown(shutdown_mode::drain);
  }
  EXPECT_EQ(reported, numbers);
  EXPECT_EQ(reported.size(), 2u);
  EXPECT_NE(file.find("join_test.cpp"), std::string::npos) << file;
  EXPECT_EQ(line, expected);
  EXPECT_NE(code, nullptr);
}

TEST_F(Unhandled, CancellationOfAStoppedFiberIsNotReported) {
  runtime& rt = make_with_handler();
  rt.run([] {
    auto handle = spawn([] { this_fiber::sleep_for(1h); });
    EXPECT_TRUE(handle.request_stop());
    EXPECT_FALSE(handle.request_stop());
    handle.join();
  });
  EXPECT_EQ(reports_, 0);
  rt.run([] { spawn([] { throw operation_cancelled(); }).join(); });
  EXPECT_EQ(reports_, 1) << "thrown without having been asked to";
}

TEST_F(Unhandled, CancellationAtTheEndOfTheRuntimeIsNotReported) {
  runtime& rt = make_with_handler();
  rt.run([] { spawn([] { this_fiber::sleep_for(1h); }).detach(); });
  rt.request_stop();
  rt.spawn([] { this_fiber::sleep_for(1h); }).detach();
  end(rt, shutdown_mode::drain);
  EXPECT_EQ(reports_, 0);
}

TEST(UnhandledDeathTest, ByDefaultIsReportedAndTerminates) {
  use_threadsafe_death_tests();
  EXPECT_EXIT(
      {
        const watchdog dog("UnhandledDeathTest");
        runtime rt({.threads = 2});
        rt.spawn({.name = "loser"}, [] { throw std::runtime_error("lost"); }).detach();
        rt.shutdown(shutdown_mode::drain);
      },
      KilledBySignal(SIGABRT),
      "ulexite: unhandled exception in fiber #[0-9]+ 'loser' .spawned at .*join_test.cpp:[0-9]+.: lost");
}

// The end of a detached fiber may run code that waits: its result's destructor, the handler of its exception. It counts
// as alive until then. Its block is returned on the worker on which it then runs.
struct waits_when_destroyed {
  explicit waits_when_destroyed(std::atomic<int>& count) : done(&count) {}
  waits_when_destroyed(waits_when_destroyed&& other) noexcept : done(std::exchange(other.done, nullptr)) {}
  ~waits_when_destroyed() {
    if (!done) return;
    for (int i = 0; i < 20; ++i) this_fiber::yield();
    this_fiber::sleep_for(std::chrono::microseconds(200));
    ++*done;
  }
  std::atomic<int>* done;
};

TEST_P(Join, WaitsInTheDestructorOfAResultThatNobodyTakes) {
  constexpr int count = ULEXITE_TSAN ? 50 : 500;
  std::atomic<int> destroyed{0};
  {
    runtime own({.threads = GetParam()});
    own.run([&] {
      for (int i = 0; i < count; ++i) spawn([&] { return waits_when_destroyed(destroyed); }).detach();
    });
    own.shutdown(shutdown_mode::drain);
  }
  EXPECT_EQ(destroyed, count);
}

TEST_P(Join, WaitsInTheHandlerOfAnExceptionThatNobodyTakes) {
  constexpr int count = ULEXITE_TSAN ? 50 : 500;
  std::atomic<int> handled{0};
  {
    runtime own({.threads = GetParam(), .on_unhandled_exception = [&](const unhandled_exception&) {
                   this_fiber::yield();
                   this_fiber::sleep_for(std::chrono::microseconds(100));
                   ++handled;
                 }});
    own.run([&] {
      for (int i = 0; i < count; ++i) spawn([] { throw std::runtime_error("nobody's"); }).detach();
    });
    own.shutdown(shutdown_mode::drain);
  }
  EXPECT_EQ(handled, count);
}

TEST_P(Join, ByTheFiberItselfIsAMisuse) {
  run([] {
    channel<join_handle<>*> itself(1);
    auto handle = spawn([&] {
      join_handle<>& own = **itself.receive();
      EXPECT_THROW(own.join(), usage_error);
      EXPECT_THROW(own.get(), usage_error);
      EXPECT_TRUE(own.joinable());
    });
    itself.send(&handle);
    handle.get();
  });
}

TEST_P(Join, ByTwoAtOnceIsAMisuse) {
  auto sleeper = rt().spawn([] { this_fiber::sleep_for(1h); });
  auto first = spawn_until_it_waits(rt(), [&] { sleeper.join(); });
  EXPECT_THROW(sleeper.join(), usage_error);
  EXPECT_THROW(sleeper.wait_for(1h), usage_error);
  EXPECT_THROW(rt().spawn([&] { sleeper.get(); }).get(), usage_error);
  EXPECT_THROW(rt().spawn([&] { select(on_join(sleeper), after(1h)); }).get(), usage_error);
  EXPECT_THROW(rt().spawn([&] { when_all(std::span(&sleeper, 1)); }).get(), usage_error);
  EXPECT_FALSE(first.done());
  sleeper.request_stop();
  first.get();
  EXPECT_THROW(sleeper.get(), operation_cancelled);
}

TEST_P(Join, ByTheFiberItselfInBlockInPlaceIsAMisuse) {
  channel<join_handle<>*> itself(1);
  auto handle = rt().spawn([&] {
    join_handle<>& own = **itself.receive();
    block_in_place([&] {
      EXPECT_THROW(own.join(), usage_error);
      EXPECT_THROW(own.wait_for(1h), usage_error);
      EXPECT_THROW(select(on_join(own)), usage_error);
    });
    EXPECT_THROW(own.join(), usage_error);
    itself.send(nullptr);
  });
  itself.send(&handle);
  wait_until([&] { return handle.done(); });
  EXPECT_EQ(itself.receive(), nullptr);
}

}  // namespace
