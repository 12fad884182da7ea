// A machine that refuses threads, stacks or memory. In processes of their own, with limits of their own.

#include "support/runtime_fixture.hpp"

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/blocking.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using detail::stack_pool;
using testing::ExitedWithCode;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class Refusal : public testing::Test {
 protected:
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the sanitizer needs the address space";
    use_threadsafe_death_tests();
  }
};

// Ends the process when a test of this file is not so.
void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(1);
}
#define DEMAND(condition) demand(condition, #condition)

// While it lives, the process gets only that much more address space.
class memory_limit {
 public:
  explicit memory_limit(std::size_t bytes) {
    std::size_t pages = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    DEMAND(file && std::fscanf(file, "%zu", &pages) == 1);
    std::fclose(file);
    set(pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes);
  }
  ~memory_limit() { set(RLIM_INFINITY); }
  memory_limit(const memory_limit&) = delete;
  memory_limit& operator=(const memory_limit&) = delete;

 private:
  static void set(rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    DEMAND(::setrlimit(RLIMIT_AS, &limit) == 0);
  }
};

// `operation` throws a std::system_error of that cause.
template <class F>
bool is_refused(F operation, std::errc cause) {
  try {
    operation();
  } catch (const std::system_error& refused) {
    return refused.code() == cause;
  }
  return false;
}

struct idle_job : job {
  idle_job() {
    run = [](job*) noexcept {};
  }
};

// Each way to bring the first work into `rt` meets the refusal, and the same runtime works when there is memory again.
void expect_refused(runtime& rt, std::size_t left, std::errc cause) {
  {
    const memory_limit limit(left);
    DEMAND(is_refused([&] { rt.run([] {}); }, cause));
    DEMAND(is_refused([&] { rt.spawn([] {}); }, cause));
    static idle_job job;
    DEMAND(is_refused([&] { rt.schedule(job); }, cause));
  }
  DEMAND(rt.run([] { return 5; }) == 5);
  DEMAND(rt.metrics().fibers_live == 0);
}

TEST_F(Refusal, OfTheFirstThreadIsASystemError) {
  EXPECT_EXIT(
      {
        const watchdog dog("OfTheFirstThread");
        stack_pool& pool = stack_pool::of_size(256 * 1024);
        pool.give(pool.take());  // of stacks there are enough
        runtime rt({.threads = 2});
        expect_refused(rt, 4 * mebibyte, std::errc::resource_unavailable_try_again);
        rt.shutdown(shutdown_mode::drain);
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

TEST_F(Refusal, OfTheFirstStackIsASystemError) {
  EXPECT_EXIT(
      {
        const watchdog dog("OfTheFirstStack");
        runtime rt({.threads = 2});
        expect_refused(rt, 50 * mebibyte, std::errc::not_enough_memory);
        rt.shutdown(shutdown_mode::drain);
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

constexpr std::size_t large = 256 * mebibyte;  // a stack that is a slab of its own

TEST_F(Refusal, OfTheFirstStackOfASizeIsMetByTheSpawn) {
  EXPECT_EXIT(
      {
        const watchdog dog("OfTheFirstStackOfASize");
        runtime rt({.threads = 1});
        rt.run([] {
          const memory_limit limit(50 * mebibyte);
          DEMAND(is_refused([] { spawn({.stack_size = large}, [] {}); }, std::errc::not_enough_memory));
        });
        DEMAND(rt.metrics().fibers_live == 0);
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

// Calls `body(release)` in a main fiber while another has the only large stack there is, until `release` is set.
template <class F>
void with_the_only_large_stack_taken(runtime& rt, F body) {
  rt.run([&] {
    std::atomic<bool> begun{false}, release{false};
    auto holder = spawn({.stack_size = large}, [&] {
      begun = true;
      wait_until([&] { return release.load(); });
    });
    wait_until([&] { return begun.load(); });
    const memory_limit limit(50 * mebibyte);
    body(release);
    release = true;
    holder.join();
  });
}

void wait_until_one_is_refused(runtime& rt) {
  wait_until([&] { return rt.metrics().stacks_refused > 0; });
}

// It is looked at by the tick, not at each maintenance: 61 dispatches were a refusal. However slow the machine is,
// there are no more ticks than the time has room for.
TEST_F(Refusal, OfAStackLeavesTheOthersTheirWorker) {
  EXPECT_EXIT(
      {
        const watchdog dog("LeavesTheOthers");
        runtime rt({.threads = 1});
        join_handle<> refused;
        with_the_only_large_stack_taken(rt, [&](std::atomic<bool>&) {
          refused = spawn({.stack_size = large}, [] {});
          wait_until_one_is_refused(rt);
          const auto begin = std::chrono::steady_clock::now();
          for (int i = 0; i < 20'000; ++i) this_fiber::yield();
          DEMAND(!refused.done());
          const auto ticks = (std::chrono::steady_clock::now() - begin) / 10ms;
          DEMAND(rt.metrics().stacks_refused < 50 + static_cast<std::uint64_t>(ticks));
        });
        refused.join();  // it had its turn when the other had ended
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

TEST_F(Refusal, OfAStackEndsWithTheRequestToStop) {
  EXPECT_EXIT(
      {
        const watchdog dog("EndsWithTheRequest");
        runtime rt({.threads = 2});
        with_the_only_large_stack_taken(rt, [&](std::atomic<bool>&) {
          const auto held = std::make_shared<int>();
          auto refused = spawn({.stack_size = large}, [held] {});
          wait_until_one_is_refused(rt);
          refused.request_stop();
          refused.join();
          DEMAND(held.use_count() == 1);
          bool cancelled = false;
          try {
            refused.get();
          } catch (const operation_cancelled&) {
            cancelled = true;
          }
          DEMAND(cancelled);
        });
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

// For the end of a call on which a coroutine, a receiver or a client waits.
TEST_F(Refusal, OfAStackIsNoEndOfACallThatOthersWaitFor) {
  EXPECT_EXIT(
      {
        const watchdog dog("IsNoEndOfACall");
        runtime rt({.threads = 2});
        bool called = false;
        join_handle<> alone;
        join_handle<> child;
        std::optional<task_group> group;
        with_the_only_large_stack_taken(rt, [&](std::atomic<bool>&) {
          group.emplace();
          alone = spawn({.stack_size = large}, detail::awaited_call{[&] { called = true; }});
          child = group->spawn({.stack_size = large}, detail::awaited_call{[] {}});
          wait_until_one_is_refused(rt);
          alone.request_stop();
          group->request_stop();
          const auto seen = rt.metrics().stacks_refused;
          wait_until([&] { return rt.metrics().stacks_refused > seen + 4; });  // some ticks later
          DEMAND(!alone.done() && !child.done());
        });
        alone.join();
        child.join();
        DEMAND(called);
        group.reset();
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

TEST_F(Refusal, OfAStackDoesNotKeepARuntimeFromItsEnd) {
  EXPECT_EXIT(
      {
        const watchdog dog("DoesNotKeepARuntime");
        runtime other({.threads = 1});
        with_the_only_large_stack_taken(other, [&](std::atomic<bool>&) {
          for (const auto mode : {shutdown_mode::cancel, shutdown_mode::abandon}) {
            runtime rt({.threads = 1});
            rt.spawn({.stack_size = large}, [] {}).detach();
            wait_until_one_is_refused(rt);
            DEMAND(rt.shutdown(mode) == (mode == shutdown_mode::abandon ? 1u : 0u));
          }
        });
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

// Root has no limit of threads, so a process of root becomes another user.
bool become_another_user() {
  const auto another = static_cast<uid_t>(1'000'000 + ::getpid());
  return ::geteuid() != 0 || ::setresuid(another, another, another) == 0;
}

// Whether a process can become the user that no_more_threads needs.
bool threads_can_be_limited() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(become_another_user() ? 0 : 1);
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

// While it lives, the user of the process gets no more threads.
class no_more_threads {
 public:
  no_more_threads() {
    DEMAND(become_another_user());
    set(1);
  }
  ~no_more_threads() { set(RLIM_INFINITY); }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;

 private:
  static void set(rlim_t threads) {
    rlimit limit{};
    DEMAND(::getrlimit(RLIMIT_NPROC, &limit) == 0);
    limit.rlim_cur = std::min(threads, limit.rlim_max);
    DEMAND(::setrlimit(RLIMIT_NPROC, &limit) == 0);
  }
};

TEST_F(Refusal, OfThreadsToTheUserIsASystemError) {
  if (!threads_can_be_limited()) GTEST_SKIP() << "root cannot become another user here";
  EXPECT_EXIT(
      {
        const watchdog dog("OfThreadsToTheUser");
        runtime rt({.threads = 2});
        {
          const no_more_threads limit;
          DEMAND(is_refused([&] { rt.run([] {}); }, std::errc::resource_unavailable_try_again));
        }
        DEMAND(rt.run([] { return 5; }) == 5);
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

TEST_F(Refusal, OfFurtherThreadsToTheUserLeavesTheFirstToDoItAll) {
  if (!threads_can_be_limited()) GTEST_SKIP() << "root cannot become another user here";
  EXPECT_EXIT(
      {
        const watchdog dog("LeavesTheFirst");
        runtime rt({.threads = 8});
        rt.run([] {
          const no_more_threads limit;
          int ran = 0;  // by one worker
          task_group all;
          for (int i = 0; i < 1000; ++i)
            all.spawn([&] {
              this_fiber::yield();
              ++ran;
            });
          all.wait();
          DEMAND(ran == 1000);
          DEMAND(is_refused([] { blocking([] {}); }, std::errc::resource_unavailable_try_again));
        });
        rt.run([] { DEMAND(blocking([] { return 5; }) == 5); });
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

// Makes the process a member of the control group `group`, which may have so much memory.
void join_group(const std::filesystem::path& group, std::size_t bytes) {
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream file(group / name);
    file << text << std::endl;
    DEMAND(file.good());
  };
  const bool second = std::filesystem::exists(group / "memory.max");  // of the two versions of control groups
  write(second ? "memory.max" : "memory.limit_in_bytes", std::to_string(bytes));
  write("cgroup.procs", std::to_string(::getpid()));
}

// Touches so much of the stack of the calling fiber.
template <std::size_t Size>
[[gnu::noinline]] void use_stack() {
  char used[Size];
  for (std::size_t i = 0; i < Size; i += 1024) const_cast<volatile char&>(used[i]) = 1;
}

// The kernel ends a process that needs more than its group may have, so the stacks of a crowd must serve the next one.
TEST_F(Refusal, OfMemoryToAControlGroupIsNotMetByOneCrowdAfterTheOther) {
  const char* const group = std::getenv("ULEXITE_TEST_CGROUP");
  if (!group) GTEST_SKIP() << "ULEXITE_TEST_CGROUP names no control group that the test may use";
  EXPECT_EXIT(
      {
        const watchdog dog("OfMemoryToAControlGroup");
        join_group(group, 96 * mebibyte);
        runtime rt({.threads = 2});
        rt.run([] {
          for (int crowd = 0; crowd < 40; ++crowd) {
            task_group all;
            for (int i = 0; i < 1000; ++i)
              all.spawn([] {
                use_stack<32 * 1024>();
                this_fiber::yield();
              });
            all.wait();
          }
        });
        std::_Exit(0);
      },
      ExitedWithCode(0), "");
}

}  // namespace
