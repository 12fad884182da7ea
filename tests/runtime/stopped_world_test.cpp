// A stopped world does not move, can be read completely, and continues. Workers come and go without a loss.

#include "support/waiting.hpp"

#include <ulexite/runtime/stopped_world.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/mutex.hpp>

#include <map>
#include <stop_token>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class StoppedWorld : public WorkersTest {};
ULEXITE_TEST_WORKERS(StoppedWorld);

std::map<std::string, fiber_view> by_name(runtime& rt) {
  std::map<std::string, fiber_view> found;
  for_each_fiber(rt, [&](const fiber_view& fiber) { found[fiber.name] = fiber; });
  return found;
}

// While busy fibers run, `stop` stops the world: nothing moves.
template <class Stop>
void expect_standstill(runtime& rt, Stop stop) {
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> steps{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(rt.spawn([&, i] {
      while (!over) {
        ++steps;
        if (i % 3 == 0) this_fiber::sleep_for(10us);
        this_fiber::yield();
      }
    }));
  stop([&] {
    for (int round = 0; round < 30; ++round) {
      {
        const stopped_world world(rt, 20s);
        const std::uint64_t before = steps;
        for (int look = 0; look < 20; ++look) std::this_thread::sleep_for(20us);
        EXPECT_EQ(steps, before) << "a fiber ran in a stopped world";
      }
      const std::uint64_t before = steps;
      wait_until([&] { return steps != before; });
    }
  });
  over = true;
  for (auto& each : all) each.get();
}

std::atomic<bool> tick_is_held{false}, tick_may_end{false}, tick_has_ended{false};

// A tick may end fibers that never began, so it is no less a part of the world than they.
TEST_P(StoppedWorld, WaitsForTheTickOfTheMonitor) {
  detail::runtime_state& state = detail::state_of(rt());
  tick_is_held = tick_may_end = tick_has_ended = false;
  state.monitor.calls.at_tick = [](detail::runtime_state&) {
    if (tick_is_held.exchange(true)) return;
    wait_until([] { return tick_may_end.load(); });
    tick_has_ended = true;
  };
  std::atomic<bool> over{false};
  auto busy = rt().spawn([&] {
    while (!over) this_fiber::yield();
  });
  wait_until([] { return tick_is_held.load(); });
  std::thread stops([&] {
    const stopped_world world(rt(), 60s);
    EXPECT_TRUE(tick_has_ended);
  });
  wait_until([&] { return state.world.is_taken(); });
  for (int look = 0; look < 100; ++look) std::this_thread::sleep_for(100us);  // else it would not come to its end
  tick_may_end = true;
  stops.join();
  over = true;
  busy.get();
}

TEST_P(StoppedWorld, NothingMovesFromOutside) {
  expect_standstill(rt(), [](auto body) { body(); });
}

TEST_P(StoppedWorld, NothingMovesFromAFiberOfAnotherRuntime) {
  runtime& other = make(1);
  expect_standstill(rt(), [&](auto body) { other.run(body); });
}

TEST_P(StoppedWorld, FromAFiberOfIt) {
  std::atomic<std::uint64_t> steps{0};
  run([&] {
    std::atomic<bool> over{false};
    std::vector<join_handle<>> all;
    for (int i = 0; i < 20; ++i)
      all.push_back(spawn([&] {
        while (!over) {
          ++steps;
          this_fiber::yield();
        }
      }));
    for (int round = 0; round < 30; ++round) {
      {
        const stopped_world world(current_runtime(), 20s);
        const std::uint64_t before = steps;
        std::this_thread::sleep_for(200us);
        EXPECT_EQ(steps, before);
        EXPECT_THROW(this_fiber::sleep_for(1h), usage_error) << "its maker may not wait";
      }
      for (int i = 0; i < 10; ++i) this_fiber::yield();
    }
    over = true;
    for (auto& each : all) each.get();
  });
  EXPECT_GT(steps, 0U);
}

TEST_P(StoppedWorld, EveryFiberIsSeen) {
  int one = 1;
  event over;
  channel<int> empty;
  mutex held;
  std::vector<join_handle<>> all;
  const auto started = [&](const char* name, auto function) {
    all.push_back(rt().spawn({.name = name}, std::move(function)));
  };
  started("holder", [&] {
    this_fiber::set_user_data(&one);
    const std::lock_guard lock(held);
    over.wait();
  });
  wait_until_all_wait(rt());
  started("locks", [&] { const std::lock_guard lock(held); });
  started("receives", [&] { static_cast<void>(empty.receive()); });
  started("joins", [&] { all[0].join(); });
  wait_until_all_wait(rt());
  {
    const stopped_world world(rt(), 20s);
    auto seen = by_name(rt());
    ASSERT_EQ(seen.size(), 4U);
    for (const auto& [name, fiber] : seen) {
      EXPECT_EQ(fiber.state, fiber_view::status::waiting) << name;
      EXPECT_NE(std::string(fiber.file).find("stopped_world_test.cpp"), std::string::npos);
      EXPECT_GT(fiber.line, 0U);
      EXPECT_LT(fiber.low, fiber.sp);
      EXPECT_LT(fiber.sp, fiber.high);
      EXPECT_GE(fiber.record_size, 128U);
      ASSERT_TRUE(stack_around(fiber.sp));
      EXPECT_EQ(stack_around(fiber.sp)->high, fiber.high);
    }
    EXPECT_EQ(seen["holder"].user_data, &one);
    EXPECT_EQ(seen["holder"].waits, std::string("for event"));
    EXPECT_EQ(seen["holder"].object, &over);
    EXPECT_EQ(seen["locks"].holder, seen["holder"].id);
    EXPECT_EQ(seen["receives"].object, &empty);
    EXPECT_EQ(seen["joins"].holder, seen["holder"].id);
  }
  over.set();
  empty.close();
  all.back().join();  // it joins the first
  for (auto& each : all) each.join();
}

// As a collector reads: all words.
__attribute__((no_sanitize("address", "thread"))) bool contains(const void* low, const void* high, const void* what) {
  for (auto at = reinterpret_cast<std::uintptr_t>(low); at + sizeof(void*) <= reinterpret_cast<std::uintptr_t>(high);
       at += sizeof(void*))
    if (*reinterpret_cast<void* const*>(at) == what) return true;
  return false;
}

// The content of a suspended fiber's stack is within its bounds, where a collector searches.
TEST_P(StoppedWorld, WhatAFiberHoldsIsInWhatIsTold) {
  constexpr int fibers = 100;
  std::vector<std::unique_ptr<int>> objects;
  event over;
  std::vector<join_handle<>> all;
  for (int i = 0; i < fibers; ++i) {
    objects.push_back(std::make_unique<int>(i));
    all.push_back(rt().spawn([&over, object = objects.back().get()] {
      int* volatile local = object;
      over.wait();
      EXPECT_EQ(local, object);
    }));
  }
  wait_until_all_wait(rt());
  int found_on_stack = 0, found_in_record = 0;
  const stopped_world world(rt(), 20s);
  for_each_fiber(rt(), [&](const fiber_view& fiber) {
    for (const auto& object : objects) {
      found_on_stack += contains(fiber.sp, fiber.high, object.get());
      found_in_record +=
          contains(fiber.record, static_cast<const char*>(fiber.record) + fiber.record_size, object.get());
    }
  });
#if !ULEXITE_ASAN  // which has variables elsewhere
  EXPECT_EQ(found_on_stack, fibers);
#endif
  EXPECT_EQ(found_in_record, fibers);
  over.set();  // a wake is no wait
}

// Sanitizers watch it.
TEST_P(StoppedWorld, DataAreToldBesideFibersThatEnd) {
  int object;
  runtime& watched = rt();
  const std::jthread visitor([&](const std::stop_token& over) {
    while (!over.stop_requested())
      for_each_fiber(watched,
                     [&](const fiber_view& fiber) { EXPECT_TRUE(!fiber.user_data || fiber.user_data == &object); });
  });
  watched.run([&] {
    for (int round = 0; round < 50; ++round) {
      task_group all;
      for (int i = 0; i < 20; ++i)
        all.spawn([&] {
          this_fiber::set_user_data(&object);
          this_fiber::yield();
        });
      all.wait();
    }
  });
}

TEST_P(StoppedWorld, ThoseWhoDoNotComeAreNamed) {
  std::atomic<bool> over{false}, begun{false};
  auto hog = rt().spawn({.name = "hog"}, [&] {
    begun = true;
    while (!over) {
    }
  });
  wait_until([&] { return begun.load(); });
  try {
    const stopped_world world(rt(), 20ms);
    ADD_FAILURE() << "a hog cannot be stopped";
  } catch (const std::system_error& late) {
    EXPECT_EQ(late.code(), std::errc::timed_out);
    EXPECT_NE(std::string(late.what()).find("'hog' (spawned at "), std::string::npos) << late.what();
  }
  if (GetParam() > 1) EXPECT_EQ(rt().spawn([] { return 4; }).get(), 4) << "nothing is stopped";
  over = true;
  hog.get();
  const stopped_world world(rt(), 20s);
}

TEST_P(StoppedWorld, OneAtATime) {
  EXPECT_EQ(run([] { return 1; }), 1);
  std::optional<stopped_world> world(std::in_place, rt(), 20s);
  EXPECT_THROW(const stopped_world second(rt(), 1ms), usage_error);
  std::thread([&] { EXPECT_THROW(const stopped_world second(rt(), 1ms), usage_error); }).join();
  world.reset();
  EXPECT_EQ(run([] { return 2; }), 2);
  const stopped_world again(rt(), 20s);
}

TEST_P(StoppedWorld, ASafepointComesInTime) {
  std::atomic<bool> over{false}, begun{false};
  auto computing = rt().spawn([&] {
    begun = true;
    while (!over) this_fiber::yield_if_requested();
  });
  wait_until([&] { return begun.load(); });
  for (int i = 0; i < 10; ++i) const stopped_world world(rt(), 20s);
  over = true;
  computing.get();
}

// ---- the number of workers ----

class Resize : public RuntimeTest {};

TEST_F(Resize, NothingIsLost) {
  for (const std::size_t most : {2U, 4U, 8U}) {
    runtime& rt = make(runtime_options{.threads = 1, .max_threads = most});
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> spawned{0}, ran{0};
    std::vector<join_handle<>> all;
    for (int i = 0; i < 12; ++i)
      all.push_back(rt.spawn([&, i] {
        channel<int> own(1);
        while (!over) {
          ++spawned;
          auto child = spawn([&] { ++ran; });
          if (i % 3 == 0) this_fiber::sleep_for(1us);
          if (i % 3 == 1) {
            own.send(1);
            static_cast<void>(own.receive());
          }
          child.get();
        }
      }));
    for (int round = 0; round < 300; ++round) {
      rt.resize(1 + static_cast<std::size_t>(round * 7) % most);
      std::this_thread::sleep_for(std::chrono::microseconds(round % 500));
    }
    over = true;
    for (auto& each : all) each.get();
    EXPECT_EQ(spawned, ran);
    rt.resize(most);
    EXPECT_EQ(rt.metrics().lost_wakeups, 0U);
  }
}

TEST_F(Resize, ChangesTheWidth) {
  runtime& rt = make(runtime_options{.threads = 1, .max_threads = 4});
  const auto width = [&](int wanted) {  // how many fibers run at the same time; they stay until there are so many
    std::atomic<int> inside{0}, most{0};
    rt.run([&] {
      std::vector<join_handle<>> all;
      for (int i = 0; i < 8; ++i)
        all.push_back(spawn([&] {
          const int now = ++inside;
          int seen = most;
          while (seen < now && !most.compare_exchange_weak(seen, now)) {
          }
          std::this_thread::sleep_for(20ms);
          hog_until([&] { return most >= wanted; }, 20s);
          --inside;
        }));
      for (auto& each : all) each.get();
    });
    return most.load();
  };
  EXPECT_EQ(width(1), 1);
  rt.resize(4);
  EXPECT_GT(width(2), 1);
  rt.resize(1);
  wait_until([&] { return rt.metrics().workers == 1; });
  EXPECT_EQ(width(1), 1);
}

TEST_F(Resize, SleepersLeaveToo) {
  runtime& rt = make(runtime_options{.threads = 4});
  rt.run([] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 8; ++i) all.push_back(spawn([] { std::this_thread::sleep_for(5ms); }));
    for (auto& each : all) each.get();
  });
  rt.resize(1);
  wait_until([&] { return rt.metrics().workers == 1; });
  EXPECT_EQ(rt.run([] { return 3; }), 3);
}

TEST_F(Resize, MisuseIsTold) {
  runtime& rt = make(2);
  EXPECT_THROW(rt.resize(0), std::invalid_argument);
  try {
    rt.resize(3);
    ADD_FAILURE();
  } catch (const std::invalid_argument& refused) {
    EXPECT_EQ(refused.what(), std::string("runtime::resize(3): from 1 to 2 workers are possible"));
  }
  end(rt, shutdown_mode::drain);
  EXPECT_THROW(rt.resize(1), usage_error);
}

}  // namespace
