// Causes that end the process, and their reports.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/runtime/parallel_context.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/isolated_context.hpp>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using testing::ExitedWithCode;
using testing::KilledBySignal;

class StackOverflowOf : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
    use_threadsafe_death_tests();
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, StackOverflowOf, testing::Values(1, 4), testing::PrintToStringParamName());

// NOLINTNEXTLINE(misc-no-recursion): that is the test
[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  if (depth < 0) return 0;
  return recurse(depth + 1) + frame[0];
}

// All workers but one are kept busy, so that the fiber overflows on any of them.
void overflow(std::size_t workers, const fiber_options& options) {
  const watchdog dog("StackOverflowOf");
  runtime rt({.threads = workers});
  rt.run([&] {
    std::atomic<std::size_t> busy{0};
    for (std::size_t i = 2; i < workers; ++i)
      spawn([&] {
        ++busy;
        for (;;) detail::cpu_relax();
      }).detach();
    wait_until([&] { return busy + 2 >= workers; });
    this_fiber::yield();
    spawn(options, [] { recurse(1); }).join();
  });
}

const std::string here = ", spawned at [^ ]*deaths_test.cpp:[0-9]+\\): address 0x[0-9a-f]+\n";

TEST_P(StackOverflowOf, ANamedFiberIsReported) {
  EXPECT_EXIT(overflow(GetParam(), {.name = "deep one"}), KilledBySignal(SIGSEGV),
              "ulexite: stack overflow in fiber #[0-9]+ 'deep one' \\(stack of 262144 bytes" + here);
}

TEST_P(StackOverflowOf, AnUnnamedFiberWithItsOwnStackSizeIsReported) {
  EXPECT_EXIT(overflow(GetParam(), {.stack_size = 60 * 1024}), KilledBySignal(SIGSEGV),
              "ulexite: stack overflow in fiber #[0-9]+ \\(stack of 65536 bytes" + here);
}

TEST_P(StackOverflowOf, AFiberThatWasSuspendedAndWentOnIsReported) {
  EXPECT_EXIT(
      {
        const watchdog dog("StackOverflowOf");
        runtime({.threads = GetParam()}).run([] {
          spawn({.name = "slept"}, [] {
            for (int i = 0; i < 10; ++i) this_fiber::sleep_for(100us);
            recurse(1);
          }).join();
        });
      },
      KilledBySignal(SIGSEGV), "ulexite: stack overflow in fiber #[0-9]+ 'slept'");
}

// Larger than the stack and its guard, and only the far end is touched, as by read(fd, buffer, n).
[[gnu::noinline]] int fill_part_of_an_array() {
  volatile char buffer[400 * 1024];
  for (int i = 0; i < 1024; ++i) buffer[i] = 7;
  return buffer[0];
}

TEST_P(StackOverflowOf, AnArrayThatWouldStepOverTheGuardIsReported) {
  EXPECT_EXIT(
      {
        const watchdog dog("StackOverflowOf");
        runtime({.threads = GetParam()}).run([] { spawn({.name = "reader"}, fill_part_of_an_array).join(); });
      },
      KilledBySignal(SIGSEGV), "ulexite: stack overflow in fiber #[0-9]+ 'reader'");
}

TEST(RuntimeDeathTest, TerminateNamesTheFiber) {
  use_threadsafe_death_tests();
  EXPECT_EXIT(
      run([] {
        spawn({.name = "worker 7"}, [] {
          struct throws {
            ~throws() { this_fiber::yield(), throw_anything(); }
            static void throw_anything() { throw std::runtime_error("too late"); }
          } const object;
        }).join();
      }),
      KilledBySignal(SIGABRT),
      "ulexite: std::terminate in fiber #[0-9]+ 'worker 7' \\(stack of 262144 bytes, spawned at [^ ]*deaths_test.cpp:");
}

TEST(RuntimeDeathTest, TerminateElsewhereNamesNoFiber) {
  use_threadsafe_death_tests();
  EXPECT_EXIT((run([] {}), std::set_terminate([] { std::_Exit(5); }), std::terminate()), ExitedWithCode(5), "^$");
  EXPECT_EXIT((std::set_terminate([] { std::_Exit(6); }), run([] { std::terminate(); })), ExitedWithCode(6),
              "^ulexite: std::terminate in fiber #1 [^\n]*\n$");
}

void write_to_null() {
  int* volatile nowhere = nullptr;
  *const_cast<volatile int*>(nowhere) = 1;
}

TEST(RuntimeDeathTest, AFaultNamesTheFiber) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  use_threadsafe_death_tests();
  EXPECT_EXIT(run([] {
                spawn({.name = "lost"}, [] {
                  this_fiber::yield();
                  write_to_null();
                }).join();
              }),
              KilledBySignal(SIGSEGV), "^ulexite: SIGSEGV in fiber #[0-9]+ 'lost' \\(stack of 262144 bytes" + here);
}

TEST(RuntimeDeathTest, ACallOnTheThreadsStackNamesItsFiber) {
  use_threadsafe_death_tests();
  const auto call = [](void (*function)()) {
    run([=] {
      on_thread_stack([] {});
      spawn({.name = "other"}, [] { on_thread_stack([] {}); }).join();
      spawn({.name = "caller"}, [=] { on_thread_stack(function); }).join();
    });
  };
  const std::string who =
      " in fiber #[0-9]+ 'caller' \\(stack of 262144 bytes, spawned at [^\n]*\\), in on_thread_stack";
  EXPECT_EXIT(call([] { std::terminate(); }), KilledBySignal(SIGABRT), "ulexite: std::terminate" + who + "\n");
  if (sanitized) GTEST_SKIP() << "the sanitizer reports a fault in its own way";
  const std::string fault = "^ulexite: SIGSEGV" + who + ": address 0x[0-9a-f]+\n$";
  EXPECT_EXIT(call([] { write_to_null(); }), KilledBySignal(SIGSEGV), fault);
  EXPECT_EXIT(call([] { recurse(1); }), KilledBySignal(SIGSEGV), fault);
}

// The fiber waits, and the worker has nothing to do.
TEST(RuntimeDeathTest, AFaultAfterACallOnTheThreadsStackNamesNoFiber) {
  if (sanitized) GTEST_SKIP() << "the sanitizer reports it in its own way";
  use_threadsafe_death_tests();
  static std::atomic<bool> called{false};
  const auto fault_when_idle = [](void (*sleep)(void*), void* data) {
    if (called) write_to_null();
    sleep(data);
  };
  EXPECT_EXIT(runtime({.threads = 1, .on_thread_idle = fault_when_idle}).run([] {
    on_thread_stack([] { called = true; });
    this_fiber::sleep_for(1h);
  }),
              KilledBySignal(SIGSEGV), "^$");
}

TEST(RuntimeDeathTest, ResumingADeadFiberIsAReportedBug) {
  use_threadsafe_death_tests();
  EXPECT_EXIT(
      {
        const watchdog dog("ResumingADeadFiber");
        runtime rt({.threads = 1});
        rt.run([] {
          detail::task* task = nullptr;
          auto handle = spawn([&] {
            task = &detail::this_agent().fiber();
            this_fiber::yield();
          });
          handle.join();
          task->runtime().inject(*task);  // what no defect of the runtime may do
          for (int i = 0; i < 1000; ++i) this_fiber::yield();
        });
      },
      KilledBySignal(SIGABRT), "ulexite: BUG: fiber #[0-9]+ was (resumed|started) while dead");
}

const char* const runs_on = "ulexite: ~runtime was called on a thread of that runtime: its fibers run on";

TEST(RuntimeDeathTest, ARuntimeThatItsOwnFiberDestroysRunsOn) {
  use_threadsafe_death_tests();
  EXPECT_EXIT(
      {
        const watchdog dog("EndingARuntime");
        auto* const rt = new runtime({.threads = 1});
        const bool lives = rt->run([&] {
          delete rt;
          return spawn([] { return true; }).get();
        });
        std::_Exit(lives ? 3 : 4);
      },
      ExitedWithCode(3), runs_on);
}

// The runtime is static, and so destroyed by the exit.
void exit_in_a_fiber(bool in_place) {
  const watchdog dog("ExitInAFiber");
  static runtime rt({.threads = 2});
  rt.run([&] {
    spawn([&] {
      if (in_place) block_in_place([] { std::exit(3); });
      std::exit(3);
    }).join();
  });
}

TEST(RuntimeDeathTest, AFiberMayEndTheProcessOfAStaticRuntime) {
  use_threadsafe_death_tests();
  EXPECT_EXIT(exit_in_a_fiber(false), ExitedWithCode(3), runs_on);
  EXPECT_EXIT(exit_in_a_fiber(true), ExitedWithCode(3), runs_on);
}

// The monitor asks the fibers of a deadlock to stop, and so it calls the callback.
void exit_in_a_stop_callback_of_the_monitor() {
  const watchdog dog("ExitInAStopCallback");
  static runtime rt({.threads = 2, .on_deadlock = deadlock_action::fail});
  rt.run([] {
    const std::stop_callback ends(this_fiber::get_stop_token(), [] { std::exit(3); });
    event().wait();
  });
}

TEST(RuntimeDeathTest, AStopCallbackMayEndTheProcessOfAStaticRuntime) {
  if (ULEXITE_TSAN) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";  // which could end the wait
  use_threadsafe_death_tests();
  EXPECT_EXIT(exit_in_a_stop_callback_of_the_monitor(), ExitedWithCode(3), runs_on);
}

// The main fiber waits for a context of its own, on whose thread the process ends.
template <class Wait>
void exit_in_a_context(Wait&& wait) {
  const watchdog dog("ExitInAContext");
  static runtime rt({.threads = 2});
  rt.run(wait);
}

TEST(RuntimeDeathTest, AContextMayEndTheProcessOfAStaticRuntime) {
  use_threadsafe_death_tests();
  const auto in_parallel = [] {
    parallel_context inner("inner", 1);
    inner.spawn([] { std::exit(3); }).join();
  };
  const auto in_parallel_within = [] {
    parallel_context outer("outer", 1);
    outer
        .spawn([] {
          parallel_context inner("inner", 1);
          inner.spawn([] { blocking([] { std::exit(3); }); }).join();
        })
        .join();
  };
  const auto in_isolated = [] { isolated_context("alone", [] { std::exit(3); }).join(); };
  EXPECT_EXIT(exit_in_a_context(in_parallel), ExitedWithCode(3), runs_on);
  EXPECT_EXIT(exit_in_a_context(in_parallel_within), ExitedWithCode(3), runs_on);
  if (!ULEXITE_ASAN)  // which takes what an abandoned stack refers to for leaks
    EXPECT_EXIT(exit_in_a_context(in_isolated), ExitedWithCode(3), runs_on);
}

TEST(RuntimeDeathTest, ARuntimeWithinAnotherEndsThereAsUsual) {
  use_threadsafe_death_tests();
  EXPECT_EXIT(
      {
        const watchdog dog("RuntimeWithin");
        runtime outer({.threads = 1});
        outer.run([] {
          auto inner = std::make_unique<runtime>(runtime_options{.threads = 1});
          inner->run([] { runtime({.threads = 1}).run([] {}); });
          inner.reset();
        });
        std::_Exit(0);
      },
      ExitedWithCode(0), "^$");
}

// The machine gives one thread, and refuses the others.
void run_with_refused_threads() {
  const watchdog dog("refused threads");
  runtime rt({.threads = 8});
  const auto work = [&](int count) {
    rt.run([&] {
      std::vector<join_handle<>> all;
      for (int i = 0; i < count; ++i) all.push_back(spawn([] { hog_until([] { return false; }, 200us); }));
      for (auto& each : all) each.join();
    });
  };
  rt.run([] { this_fiber::sleep_for(1ms); });  // one worker, one slab of stacks, one heap
  std::size_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%zu", &pages) != 1) std::_Exit(3);
  std::fclose(file);
  const rlimit limit{pages * 4096 + (4 << 20), RLIM_INFINITY};  // less than the stack of a thread
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(4);
  work(100);
  const runtime_metrics m = rt.metrics();
  if (m.workers >= 8) std::_Exit(5);
  if (m.thread_starts_refused == 0) std::_Exit(6);
  if (m.fibers_live != 0) std::_Exit(7);
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &none);
  for (int i = 0; i < 100 && rt.metrics().workers < 2; ++i) {
    std::this_thread::sleep_for(20ms);  // longer in sum than the runtime waits before it tries again
    work(20);
  }
  if (rt.metrics().workers < 2) std::_Exit(8);
  rt.shutdown(shutdown_mode::drain);
  std::_Exit(rt.metrics().lost_wakeups == 0 ? 0 : 9);
}

TEST(RuntimeDeathTest, DoesWithoutThreadsThatAreRefused) {
  if (sanitized) GTEST_SKIP() << "the sanitizer needs the address space";
  use_threadsafe_death_tests();
  EXPECT_EXIT(run_with_refused_threads(), ExitedWithCode(0), "");
}

}  // namespace
