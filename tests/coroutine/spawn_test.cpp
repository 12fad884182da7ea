// The ways to start a coroutine, and what the fiber that runs it has in common with all fibers.

#include "support/cancellation.hpp"
#include "ways.hpp"

#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoSpawn : public WorkersTest {};
ULEXITE_TEST_WORKERS(CoSpawn);

task<int> add(int a, int b) {
  co_await co_yield_now();
  co_return a + b;
}
task<> receive_one(channel<int>& from) { (void)co_await co_receive(from); }

std::string dump(const runtime& rt) {
  std::ostringstream text;
  rt.dump(text);
  rt.dump_json(text);
  return text.str();
}

TEST_P(CoSpawn, StartsATaskInARuntimeAGroupOrAContext) {
  EXPECT_EQ(co_spawn(rt(), add(1, 2)).get(), 3) << "on a plain thread";
  EXPECT_EQ(rt().spawn([] { return add(2, 2); }).get(), 4);
  EXPECT_EQ(rt().spawn(add, 2, 3).get(), 5);
  run([] {
    EXPECT_EQ(co_spawn(add(1, 2)).get(), 3);
    EXPECT_EQ(co_spawn({.name = "adds", .stack_size = 64 * 1024}, add(3, 4)).get(), 7);
    task_group group;
    task_group counted;
    concurrent_context context;
    EXPECT_EQ(co_spawn(group, add(1, 5)).get(), 6);
    EXPECT_EQ(co_spawn(context, add(1, 6)).get(), 7);
    std::atomic<int> ended{0};
    const auto count = [&]() -> task<> {
      co_await co_yield_now();
      ++ended;
    };
    counted.spawn(count);
    group.spawn(count);
    context.spawn(count).join();
    counted.wait();
    group.wait();
    EXPECT_EQ(ended, 3);
  });
}

TEST_P(CoSpawn, ThereIsNoRuntimeOnAPlainThread) { EXPECT_THROW((void)co_spawn(add(1, 2)), std::system_error); }

TEST_P(CoSpawn, CoroutinesStartCoroutines) {
  const auto grow = [](auto self, int depth) -> task<int> {
    if (depth == 0) co_return 1;
    auto left = spawn(self, self, depth - 1);
    auto right = co_spawn(self(self, depth - 1));
    const int one = co_await co_get(left);
    co_return one + co_await co_get(std::move(right));
  };
  EXPECT_EQ(rt().spawn(grow, grow, 7).get(), 128);
}

// The fiber keeps the function and the arguments until the coroutine ends.
TEST_P(CoSpawn, KeepsCapturesAndArguments) {
  auto token = std::make_shared<int>(1);
  ulexite::event go;
  auto captured = rt().spawn([token, text = std::string(200, 'a'), &go]() -> task<std::size_t> {
    co_await co_wait(go);
    co_return text.size() + static_cast<std::size_t>(token.use_count());
  });
  auto given = rt().spawn(
      [](const std::shared_ptr<int>& mine, const std::string& text, ulexite::event& until) -> task<std::size_t> {
        co_await co_wait(until);
        co_return text.size() + static_cast<std::size_t>(mine.use_count());
      },
      token, std::string(100, 'b'), std::ref(go));
  auto moved = rt().spawn(
      [](std::unique_ptr<int> mine) -> task<int> {
        co_await co_yield_now();
        co_return *mine;
      },
      std::make_unique<int>(7));
  wait_until_all_wait(rt());
  EXPECT_EQ(token.use_count(), 3);
  go.set();
  EXPECT_EQ(captured.get() / 100, 2u);
  EXPECT_EQ(given.get() / 100, 1u);
  EXPECT_EQ(moved.get(), 7);
  wait_until([&] { return token.use_count() == 1; });
}

TEST_P(CoSpawn, GivesTheStopTokenOfTheFiber) {
  auto asked = rt().spawn([](std::stop_token mine) -> task<bool> {
    const std::size_t chosen = co_await co_select(on_stop(mine), after(1h));
    co_return chosen == 0 && mine.stop_requested() && this_fiber::stop_requested();
  });
  wait_until_all_wait(rt());
  asked.request_stop();
  try {
    EXPECT_TRUE(asked.get());
  } catch (const operation_cancelled&) {  // the select itself may see the stop first
  }
}

TEST_P(CoSpawn, AFunctionMayThrowBeforeItMakesATask) {
  auto token = std::make_shared<int>(1);
  auto failing = rt().spawn(
      [token](bool fail) -> task<int> { return fail ? throw std::runtime_error("no task") : add(*token, 1); }, true);
  EXPECT_THROW(failing.get(), std::runtime_error);
  wait_until([&] { return token.use_count() == 1; });
}

TEST_P(CoSpawn, KeepsIdNameAndLocalsOverAWait) {
  run([] {
    static fiber_local<int> mine;
    std::vector<join_handle<>> all;
    for (int i = 0; i < 20; ++i)
      all.push_back(spawn(
          {.name = "keeper " + std::to_string(i)},
          [](int number) -> task<> {
            const auto id = this_fiber::id();
            *mine = number;
            for (int k = 0; k < 50; ++k) {
              if (k % 2) {
                co_await co_yield_now();
              } else {
                co_await co_sleep_for(1us);
              }
              EXPECT_EQ(this_fiber::id(), id);
              EXPECT_EQ(*mine, number);
            }
            EXPECT_EQ(this_fiber::name(), "keeper " + std::to_string(number));
          },
          i));
    for (auto& each : all) each.get();
  });
}

TEST_P(CoSpawn, DumpsNameCoroutinesTheirWaitsAndTheirPlaces) {
  run([] {
    channel<int> values;
    auto named = spawn({.name = "listener"}, [&]() -> task<> { co_await receive_one(values); });
    const int at = __LINE__ - 1;
    auto unnamed = co_spawn(receive_one(values));
    const int next = __LINE__ - 1;
    wait_until_others_wait();
    const std::string text = dump(current_runtime());
    EXPECT_NE(text.find("\"listener\""), text.npos) << text;
    EXPECT_NE(text.find("to receive from channel 0x"), text.npos) << text;
    EXPECT_NE(text.find("spawn_test.cpp:" + std::to_string(at) + " in "), text.npos) << text;
    EXPECT_NE(text.find("spawn_test.cpp:" + std::to_string(next) + " in "), text.npos) << text;
    EXPECT_EQ(text.find("coroutine/task.hpp"), text.npos) << text;
    EXPECT_NE(text.find("\n  a coroutine: no stack while it waits\n"), text.npos) << text;
    EXPECT_NE(text.find("\"coroutine\":true"), text.npos) << text;
    EXPECT_NE(text.find("\"coroutine\":false"), text.npos) << text << "of the main fiber";
    values.close();
    named.get();
    unnamed.get();
  });
}

TEST_P(CoSpawn, TracesShowTheirRunsAndWaits) {
  runtime& traced = this->rt();
  traced.start_trace();
  run([] {
    channel<int> values;
    auto reader = spawn({.name = "listener"}, [&]() -> task<> { co_await receive_one(values); });
    wait_until_others_wait();
    values.send(1);
    reader.get();
  });
  end(traced, shutdown_mode::drain);  // as in tests/runtime/trace_test.cpp
  traced.stop_trace();
  std::ostringstream text;
  traced.write_trace(text);
  const auto has = [found = text.str()](const std::string& end) {
    return std::regex_search(found, std::regex(R"("name":"listener #\d+"[^}]*"then":")" + end + '"'));
  };
  EXPECT_TRUE(has("waits to receive from channel"));
  EXPECT_TRUE(has("ended")) << "in another run";
}

TEST_P(CoSpawn, DetachedOnesRunToTheirEnds) {
  std::atomic<int> ended{0}, alive{0};
  for (int i = 0; i < 100; ++i)
    rt().spawn([&, kept = lives(alive)]() -> task<> {
          const lives here(alive);
          co_await co_sleep_for(100us);
          ++ended;
        })
        .detach();
  EXPECT_EQ(end(rt(), shutdown_mode::drain), 0u);
  EXPECT_EQ(ended, 100);
  EXPECT_EQ(alive, 0);
}

TEST_P(CoSpawn, AnExceptionThatNobodyTakesIsReported) {
  unhandled_log log;
  runtime& reporting = make(log.options(GetParam()));
  reporting
      .spawn({.name = "careless"},
             []() -> task<> {
               co_await co_yield_now();
               throw std::runtime_error("unseen");
             })
      .detach();
  EXPECT_EQ(end(reporting, shutdown_mode::drain), 0u);
  EXPECT_EQ(log.names(), std::vector<std::string>{"careless"});
}

TEST_P(CoSpawn, JoinsOfItTimeOut) {
  ulexite::event go;
  auto waits = rt().spawn([&]() -> task<int> {
    co_await co_wait(go);
    co_return 3;
  });
  run([&] {
    EXPECT_EQ(select(on_join(waits), after(1ms)), 1u);
    EXPECT_EQ(spawn([&]() -> task<std::size_t> { co_return co_await co_select(on_join(waits), after(1ms)); }).get(),
              1u);
    go.set();
    EXPECT_EQ(select(on_join(waits), after(1h)), 0u);
  });
  EXPECT_EQ(waits.get(), 3);
}

TEST_P(CoSpawn, AFailingChildCancelsItsSiblings) {
  run([] {
    std::atomic<int> alive{0}, cancelled{0};
    channel<int> never;
    task_group group;
    for (int i = 0; i < 20; ++i)
      group.spawn([&, i]() -> task<> {
        const lives here(alive);
        if (i == 10) {
          co_await co_sleep_for(1ms);
          throw std::runtime_error("first");
        }
        try {
          co_await receive_one(never);
        } catch (const operation_cancelled&) {
          ++cancelled;
          throw;
        }
      });
    EXPECT_THROW(group.wait(), std::runtime_error);
    EXPECT_EQ(cancelled, 19);
    EXPECT_EQ(alive, 0);
  });
}

TEST_P(CoSpawn, AGroupIsWaitedForInACoroutine) {
  run([] {
    std::atomic<int> ended{0};
    spawn([&]() -> task<> {
      task_group group;
      for (int i = 0; i < 50; ++i)
        group.spawn([&]() -> task<> {
          co_await co_sleep_for(10us);
          ++ended;
        });
      co_await co_wait(group);
      EXPECT_EQ(ended, 50);
      group.spawn([]() -> task<> {
        co_await co_yield_now();
        throw std::runtime_error("child");
      });
      bool thrown = false;
      try {
        co_await co_wait(group);
      } catch (const std::runtime_error&) {
        thrown = true;
      }
      EXPECT_TRUE(thrown);
      co_await co_wait(group);
    }).get();
  });
}

TEST_P(CoSpawn, AStopOfOneThatWaitsForItsGroupEndsTheChildrenFirst) {
  std::atomic<int> alive{0};
  channel<int> never;
  auto parent = rt().spawn([&]() -> task<> {
    task_group group;
    for (int i = 0; i < 10; ++i)
      group.spawn([&]() -> task<> {
        const lives here(alive);
        co_await receive_one(never);
      });
    try {
      co_await co_wait(group);
    } catch (const operation_cancelled&) {
      EXPECT_EQ(alive, 0);
      throw;
    }
  });
  wait_until([&] { return alive == 10; });
  wait_until_all_wait(rt());
  parent.request_stop();
  EXPECT_THROW(parent.get(), operation_cancelled);
}

TEST_P(CoSpawn, ManyAtOnceWaitAndEnd) {
  const int count = fibers(20'000);
  run([count] {
    channel<int> values;
    std::atomic<int> total{0};
    task_group all;
    for (int i = 0; i < count; ++i) all.spawn([&]() -> task<> { total += *co_await co_receive(values); });
    for (int i = 0; i < count; ++i) values.send(1);
    all.wait();
    EXPECT_EQ(total, count);
  });
}

}  // namespace
