#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/event.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Run : public WorkersTest {};
ULEXITE_TEST_WORKERS(Run);

TEST_P(Run, ReturnsWhatTheMainFiberReturns) {
  EXPECT_EQ(run([] { return 41 + 1; }), 42);
  EXPECT_EQ(run([] { return std::string("text"); }), "text");
  EXPECT_EQ(*run([] { return std::make_unique<int>(7); }), 7);
  bool ran = false;
  run([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST_P(Run, ReturnsAReferenceAsOne) {
  int value = 1;
  static_assert(std::is_same_v<decltype(rt().run([&]() -> int& { return value; })), int>);  // run decays, get does not
  EXPECT_EQ(run([&]() -> int& { return value; }), 1);
}

TEST_P(Run, RethrowsWhatTheMainFiberThrows) {
  EXPECT_THROW(run([] { throw std::runtime_error("wrong"); }), std::runtime_error);
  EXPECT_THROW(run([]() -> int { throw 5; }), int);
  EXPECT_EQ(run([] { return 1; }), 1) << "and the runtime can be used again";
}

TEST_P(Run, PassesArguments) {
  EXPECT_EQ(rt().run([](int a, std::unique_ptr<int> b) { return a + *b; }, 1, std::make_unique<int>(2)), 3);
  EXPECT_EQ(rt().run(&std::string::size, std::string("abc")), 3u);
}

TEST_P(Run, HappensInAFiberNamedMain) {
  EXPECT_FALSE(in_fiber());
  EXPECT_EQ(this_fiber::id(), 0u);
  EXPECT_EQ(this_fiber::name(), "");
  run([] {
    EXPECT_TRUE(in_fiber());
    EXPECT_NE(this_fiber::id(), 0u);
    EXPECT_EQ(this_fiber::name(), "main");
  });
}

TEST_P(Run, LeavesOtherFibersAlive) {
  std::atomic<bool> go{false}, went{false};
  run([&] {
    spawn([&] {
      wait_until([&] { return go.load(); });
      went = true;
    }).detach();
  });
  EXPECT_EQ(rt().metrics().fibers_live, 1u);
  go = true;
  wait_until([&] { return went.load(); });
}

TEST_P(Run, InsideAFiberOfTheRuntimeIsAUsageError) {
  run([&] { EXPECT_THROW(rt().run([] {}), usage_error); });
  run([&] { EXPECT_THROW(rt().shutdown(shutdown_mode::drain), usage_error); });
  EXPECT_EQ(run([] { return 3; }), 3);
}

TEST_P(Run, FreeRunInsideAFiberIsAUsageError) {
  run([] { EXPECT_THROW(ulexite::run([] {}), usage_error); });
}

TEST_P(Run, IsOneAtATime) {
  std::atomic<bool> running{false}, go{false};
  runtime& shared = rt();
  std::thread other([&] {
    shared.run([&] {
      running = true;
      wait_until([&] { return go.load(); });
    });
  });
  wait_until([&] { return running.load(); });
  EXPECT_THROW(shared.run([] {}), usage_error);
  go = true;
  other.join();
  EXPECT_EQ(run([] { return 2; }), 2);
}

TEST_P(Run, AfterShutdownIsAUsageError) {
  run([] {});
  end(rt(), shutdown_mode::drain);
  EXPECT_THROW(rt().run([] {}), usage_error);
  EXPECT_THROW(rt().spawn([] {}), usage_error);
  EXPECT_THROW(rt().shutdown(shutdown_mode::drain), usage_error);
}

using FreeRun = RuntimeTest;

TEST_F(FreeRun, MakesARuntimeAndEndsIt) {
  EXPECT_EQ(ulexite::run([](int a) { return spawn([a] { return a + 1; }).get(); }, 4), 5);
  EXPECT_THROW(ulexite::run([] { throw 1; }), int);
}

TEST_F(FreeRun, CancelsWhatIsLeft) {
  bool cancelled = false;
  ulexite::run([&] {
    spawn([&] {
      try {
        this_fiber::sleep_for(1h);
      } catch (const operation_cancelled&) {
        cancelled = true;
      }
    }).detach();
  });
  EXPECT_TRUE(cancelled);
}

using Options = RuntimeTest;

TEST_F(Options, OutOfRangeAreRefusedWithTheirValue) {
  try {
    runtime rt({.threads = 5000});
    FAIL() << "5000 threads were accepted";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("5000"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("threads"), std::string::npos) << e.what();
  }
  EXPECT_THROW(runtime({.stack_size = std::size_t{2} << 30}), std::invalid_argument);
  EXPECT_THROW(runtime({.threads = 1, .max_threads = 1025}), std::invalid_argument);
  EXPECT_THROW(runtime({.threads = 1, .max_threads = SIZE_MAX}), std::invalid_argument);
}

TEST_F(Options, AStackOfNoSizeHasTheDefault) {
  runtime({.threads = 1, .stack_size = 0}).run([] {
    volatile char large[100 * 1024];
    for (std::size_t i = 0; i < sizeof large; i += 4096) large[i] = 1;
  });
}

TEST_F(Options, TheEnvironmentGivesTheNumberOfThreads) {
  ::setenv("ULEXITE_THREADS", "3", 1);
  runtime& rt = make(0);
  ::unsetenv("ULEXITE_THREADS");
  rt.run([] {
    std::vector<join_handle<>> all;
    for (int i = 0; i < 50; ++i) all.push_back(spawn([] { hog_until([] { return false; }, 1ms); }));
    for (auto& each : all) each.join();
  });
  EXPECT_LE(rt.metrics().workers, 3u);
  for (const char* const wrong : {"0", "many", "-1", "99999"}) {
    ::setenv("ULEXITE_THREADS", wrong, 1);
    EXPECT_THROW(runtime(), std::invalid_argument) << wrong;
    ::unsetenv("ULEXITE_THREADS");
  }
}

TEST_F(Options, ThreadHooksRunOnEachWorkerFirstAndLast) {
  std::atomic<int> started{0}, stopped{0};
  std::atomic<std::size_t> numbers{0};
  runtime& rt = make({.threads = 4,
                      .on_thread_start =
                          [&](std::size_t worker) {
                            numbers |= std::size_t{1} << worker;
                            ++started;
                          },
                      .on_thread_stop = [&](std::size_t) { ++stopped; }});
  EXPECT_EQ(started, 0);
  rt.run([&] {
    std::atomic<int> waiting{0};
    std::vector<join_handle<>> all;
    for (int i = 0; i < 4; ++i)  // each keeps a worker until all four have one
      all.push_back(spawn([&] {
        ++waiting;
        EXPECT_TRUE(hog_until([&] { return waiting == 4; }));
      }));
    for (auto& each : all) each.join();
  });
  EXPECT_EQ(rt.metrics().workers, 4u);
  EXPECT_EQ(started, 4);
  EXPECT_EQ(numbers, 0b1111u);
  EXPECT_EQ(stopped, 0);
  end(rt, shutdown_mode::drain);
  EXPECT_EQ(stopped, 4);
}

// Each hook waits for all the others.
TEST_F(Options, WorkersAreInTheirStartHooksAtTheSameTime) {
  constexpr int workers = 4;
  std::atomic<int> inside{0};
  std::atomic<bool> together{true};
  runtime& rt = make({.threads = workers, .on_thread_start = [&](std::size_t) {
                        ++inside;
                        if (!hog_until([&] { return inside == workers; })) together = false;
                      }});
  std::vector<join_handle<>> all;
  for (int i = 0; i < workers; ++i) all.push_back(rt.spawn([] {}));
  for (auto& each : all) each.join();
  end(rt, shutdown_mode::drain);  // the hooks' too
  EXPECT_TRUE(together);
}

TEST_F(Options, AStartHookMayWaitForAFiber) {
  runtime* self = nullptr;
  std::atomic<bool> waited{false};
  runtime& rt = make({.threads = 2, .on_thread_start = [&](std::size_t worker) {
                        if (worker != 0) return;
                        self->spawn([] {}).join();
                        waited = true;
                      }});
  self = &rt;
  rt.run([] {});
  end(rt, shutdown_mode::drain);
  EXPECT_TRUE(waited);
}

// Here the work that the hook waits for is in the queue already, and no worker is woken for it again.
TEST_F(Options, AStartHookMayWaitForTheFiberThatItsWorkerWasStartedFor) {
  std::atomic<bool> ran{false};
  runtime& rt = make({.threads = 2, .on_thread_start = [&](std::size_t worker) {
                        if (worker == 0) wait_until([&] { return ran.load(); });
                      }});
  rt.run([&] { ran = true; });
  end(rt, shutdown_mode::drain);  // its hook's too
  EXPECT_TRUE(ran);
}

// The worker in its hook takes no work, so it is not the one that the new limit allows.
TEST_F(Options, AStartHookMayWaitForAFiberWhileTheLimitIsLowered) {
  std::atomic<bool> inside{false}, go{false}, ran{false};
  runtime& rt = make({.threads = 2, .on_thread_start = [&](std::size_t worker) {
                        if (worker == 0) return;
                        inside = true;
                        wait_until([&] { return ran.load(); });
                      }});
  auto both = rt.spawn([&] {
    const auto wait = [&] {
      while (!go) this_fiber::yield();
    };
    auto first = spawn(wait);
    while (!inside) this_fiber::yield();
    auto second = spawn(wait);
    first.get();
    second.get();
    ran = true;
  });
  wait_until([&] { return inside.load(); });
  rt.resize(1);
  for (int i = 0; i < 100; ++i) std::this_thread::sleep_for(100us);  // the other worker leaves its work, and sleeps
  go = true;
  both.get();
  end(rt, shutdown_mode::drain);  // its hook's too, which reads `ran`
}

TEST_F(Options, AnIdleHookMayWakeAFiber) {
  event woken;
  std::atomic<bool> waits{false};
  const auto wake_once = [&](void (*sleep)(void*), void* data) {
    if (waits.exchange(false)) woken.set();
    sleep(data);
  };
  runtime& rt = make({.threads = 1, .on_thread_idle = wake_once});
  rt.run([&] {
    waits = true;
    woken.wait();
  });
  end(rt, shutdown_mode::drain);  // its hook's too, which reads `waits`
}

TEST_F(Options, WorkersAreStartedAsWorkAppears) {
  runtime& rt = make(8);
  EXPECT_EQ(rt.metrics().workers, 0u);
  rt.run([] {});
  EXPECT_GE(rt.metrics().workers, 1u);
  EXPECT_LE(rt.metrics().workers, 2u);  // two, if the first ends its search between the push and the wake
}

TEST_F(Options, MaxFibersIsALimitOnLiveFibers) {
  runtime& rt = make({.threads = 2, .max_fibers = 3});
  rt.run([] {
    for (int round = 0; round < 3; ++round) {
      std::atomic<bool> go{false};
      auto wait = [&] { wait_until([&] { return go.load(); }); };
      auto one = spawn(wait), two = spawn(wait);
      try {
        spawn(wait).join();
        ADD_FAILURE() << "a fourth fiber was made";
      } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), errc::limit_reached);
      }
      go = true;
      one.join();
      two.join();
    }
  });
}

}  // namespace
