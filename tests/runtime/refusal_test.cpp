// A machine that refuses threads or stacks. In processes of their own, whose address space is limited.

#include "support/runtime_fixture.hpp"

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <cstdio>
#include <system_error>

#include <sys/resource.h>
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

}  // namespace
