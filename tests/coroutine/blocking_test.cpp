// Calls on the pool, while the task has no stack.

#include "ways.hpp"

#include <filesystem>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoBlocking : public WaysTest {};
ULEXITE_TEST_WAYS(CoBlocking);

TEST_P(CoBlocking, ResultsAndExceptionsComeBack) {
  int number = 3;
  EXPECT_EQ(finish([&]() -> task<std::string> {
              const auto mine = this_fiber::id();
              EXPECT_EQ(co_await co_blocking([] { return this_fiber::id(); }), 0u) << "on a plain thread";
              EXPECT_EQ(&co_await co_blocking([&]() -> int& { return number; }), &number);
              co_await co_blocking([&] { ++number; });
              bool thrown = false;
              try {
                co_await co_blocking([] { throw std::runtime_error("there"); });
              } catch (const std::runtime_error&) {
                thrown = true;
              }
              EXPECT_TRUE(thrown);
              EXPECT_EQ(this_fiber::id(), mine);
              co_return co_await co_blocking([] { return std::string(50, 'x'); });
            }),
            std::string(50, 'x'));
  EXPECT_EQ(number, 4);
}

TEST_P(CoBlocking, FilesAreReadAndWritten) {
  const std::filesystem::path path = testing::TempDir() + "ulexite_co_blocking." + std::to_string(::getpid());
  EXPECT_EQ(finish([&]() -> task<std::string> {
              co_await co_blocking([&] { os::write_all(path, "text"); });
              co_return co_await co_blocking([&] { return os::read_all(path); });
            }),
            "text");
  std::filesystem::remove(path);
}

// The caller's frame is in use until the end of the call.
TEST_P(CoBlocking, ACallThatHasBegunIsWaitedFor) {
  std::binary_semaphore begun(0), gate(0);
  for (const bool by_deadline : {false, true}) {
    auto waits = start([&]() -> task<int> {
      const deadline_scope limit(by_deadline ? 1us : 24h);
      const shield until_it_has_begun;
      co_return co_await co_blocking([&] {
        begun.release();
        gate.acquire();
        return 4;
      });
    });
    begun.acquire();
    waits.request_stop();
    wait_until_all_wait(rt());
    EXPECT_FALSE(waits.done());
    gate.release();
    EXPECT_EQ(waits.get(), 4);
  }
  auto heard = start([&]() -> task<int> {
    co_return co_await co_blocking([&] {
      begun.release();
      gate.acquire();
      return 5;
    });
  });
  begun.acquire();
  wait_until_all_wait(rt());
  heard.request_stop();
  wait_until_all_wait(rt());
  EXPECT_FALSE(heard.done());
  gate.release();
  EXPECT_EQ(heard.get(), 5) << "what was done is not lost";
}

TEST_P(CoBlocking, AStopOrADeadlineTakesBackACallThatHasNotBegun) {
  runtime& narrow = make({.threads = std::get<1>(GetParam()), .blocking_threads = 1});
  narrow.run([&] {
    std::atomic<int> calls{0};
    const busy_pool busy;
    const auto call = [&]() -> task<> { co_await co_blocking([&] { ++calls; }); };
    auto waits = spawn(call);
    auto late = spawn([&]() -> task<> {
      const deadline_scope limit(200us);
      co_await call();
    });
    auto stopped_before = spawn(call);
    stopped_before.request_stop();
    for (int i = 0; i < 20; ++i) this_fiber::sleep_for(20us);
    waits.request_stop();
    EXPECT_THROW(waits.get(), operation_cancelled);
    EXPECT_THROW(late.get(), deadline_exceeded);
    EXPECT_THROW(stopped_before.get(), operation_cancelled);
    EXPECT_EQ(calls, 0);
  });
}

TEST_P(CoBlocking, ManyAtATimeAndStopsAmongThem) {
  std::atomic<int> called{0}, returned{0};
  std::vector<join_handle<>> all;
  for (int i = 0; i < times(200); ++i) {
    all.push_back(start([&]() -> task<> { returned += co_await co_blocking([&] { return ++called, 1; }); }));
    if (i % 2 == 0) all[static_cast<std::size_t>(i / 2)].request_stop();
  }
  for (auto& each : all) {
    try {
      each.get();
    } catch (const operation_cancelled&) {
    }
  }
  EXPECT_EQ(returned, called);
}

TEST_P(CoBlocking, HasNoStackAndIsNamedInDumps) {
  std::binary_semaphore begun(0), gate(0);
  auto waits = rt().spawn([&]() -> task<> {
    co_await co_blocking([&] {
      begun.release();
      gate.acquire();
    });
  });
  begun.acquire();
  wait_until_all_wait(rt());
  std::ostringstream text;
  rt().dump(text);
  EXPECT_NE(text.str().find("for a blocking call"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("\n  a coroutine: no stack while it waits\n"), std::string::npos) << text.str();
  gate.release();
  waits.get();
}

TEST_P(CoBlocking, OnAPlainThreadItIsAnOrdinaryCall) {
  const auto here = std::this_thread::get_id();
  EXPECT_EQ(await(co_blocking([] { return std::this_thread::get_id(); })), here);
}

}  // namespace
