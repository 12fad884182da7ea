#pragma once

// A function that returns a task is run in more than one way, and each test holds for all of them: as a coroutine,
// which has no stack while it waits; in a fiber that awaits the task, and keeps its stack; and both by turns.

#include "support/waiting.hpp"

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace ulexite::test {

enum class way { coroutine, fiber, by_turns };

class WaysTest : public OneRuntimeTest, public testing::WithParamInterface<std::tuple<way, std::size_t>> {
 public:
  static std::string name_of(const testing::TestParamInfo<ParamType>& info) {
    const std::array names{"coroutine", "fiber", "by_turns"};
    return std::string(names[static_cast<std::size_t>(std::get<0>(info.param))]) + "_" +
           std::to_string(std::get<1>(info.param));
  }

 protected:
  WaysTest() : OneRuntimeTest(std::get<1>(GetParam())) {}

  // Starts `body`, which returns a task.
  template <class F>
  auto start(F body) {
    const way how = std::get<0>(GetParam());
    if (how == way::coroutine || (how == way::by_turns && turn_++ % 2 == 0)) return rt().spawn(std::move(body));
    return rt().spawn([body = std::move(body)]() mutable -> decltype(auto) { return await(body()); });
  }
  // Starts `body`, and waits for its end.
  template <class F>
  decltype(auto) finish(F body) {
    return start(std::move(body)).get();
  }
  // Starts `body`, and returns when it waits. On a plain thread.
  template <class F>
  auto start_until_it_waits(F body) {
    auto begun = std::make_shared<std::atomic<bool>>(false);
    auto handle = start([begun, body = std::move(body)]() mutable {
      *begun = true;
      return body();
    });
    wait_until([&] { return begun->load(); });
    wait_until_all_wait(rt());
    return handle;
  }

 private:
  std::atomic<unsigned> turn_{0};
};

#define ULEXITE_TEST_WAYS(suite)                                                                                  \
  INSTANTIATE_TEST_SUITE_P(                                                                                       \
      Ways, suite,                                                                                                \
      testing::Combine(testing::Values(way::coroutine, way::fiber, way::by_turns), testing::Values(1, 2, 4, 16)), \
      suite::name_of)

// A coroutine of another library: it starts when it is called, and runs on whichever thread resumes it.
struct eager {
  struct promise_type {
    eager get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const { ADD_FAILURE() << "an exception left a coroutine of another library"; }
  };
};

// An object in a frame, or on a stack.
class lives {
 public:
  explicit lives(std::atomic<int>& alive) : alive_(&alive) { ++alive; }
  lives(lives&& other) noexcept : alive_(std::exchange(other.alive_, nullptr)) {}
  lives& operator=(lives&&) = delete;
  ~lives() {
    if (alive_) --*alive_;
  }

 private:
  std::atomic<int>* alive_;
};

}  // namespace ulexite::test
