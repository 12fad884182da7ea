#pragma once

#include "support/watchdog.hpp"

#include <ulexite/fiber/stack_pool.hpp>
#include <ulexite/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ulexite::test {

using namespace std::chrono_literals;

// Runtimes that are looked through when they have ended: no wake-up was lost, all fibers ended, no stack leaked.
class RuntimeTest : public testing::Test {
 protected:
  RuntimeTest();
  ~RuntimeTest() override;

  // A runtime for this test, which ends with it.
  runtime& make(runtime_options options);
  runtime& make(std::size_t threads) { return make(runtime_options{.threads = threads}); }
  // Ends that runtime before the test does. Returns what shutdown returned.
  std::size_t end(runtime& runtime, shutdown_mode mode);

 private:
  struct owned {
    std::unique_ptr<ulexite::runtime> runtime;
    bool ended = false;
  };
  static void report();

  const std::string name_;
  const watchdog watchdog_;
  std::vector<owned> runtimes_;
  std::vector<std::size_t> stacks_in_use_;
};

// The same with one runtime, rt(), which is made at first use.
class OneRuntimeTest : public RuntimeTest {
 protected:
  explicit OneRuntimeTest(std::size_t workers) : workers_(workers) {}

  runtime& rt() {
    if (!runtime_) runtime_ = &make(workers_);
    return *runtime_;
  }
  // Runs `function` as the main fiber of rt().
  template <class F>
  auto run(F&& function) {
    return rt().run(std::forward<F>(function));
  }

 private:
  const std::size_t workers_;
  runtime* runtime_ = nullptr;
};

// The same, over several numbers of workers.
class WorkersTest : public OneRuntimeTest, public testing::WithParamInterface<std::size_t> {
 protected:
  WorkersTest() : OneRuntimeTest(GetParam()) {}
};

#define ULEXITE_TEST_WORKERS(suite) \
  INSTANTIATE_TEST_SUITE_P(Workers, suite, testing::Values(1, 2, 4, 16), testing::PrintToStringParamName())

// For deaths in programs with threads.
inline void use_threadsafe_death_tests() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

}  // namespace ulexite::test
