#pragma once

// For tests of waits: to know that a fiber waits, and to end a wait by a request to stop.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/blocking.hpp>

#include <semaphore>

namespace ulexite::test {

// Lets time pass until no fiber of `rt` runs or can: all that have begun wait for something. To be called on a plain
// thread, once the fibers have said that they run. Two equal results, because one is not a snapshot.
template <class Runtime>
void wait_until_all_wait(const Runtime& rt) {
  const auto quiet = [](const runtime_metrics& m) { return m.workers_sleeping == m.workers && m.queued_outside == 0; };
  wait_until([&] {
    const runtime_metrics before = rt.metrics(), after = rt.metrics();
    return quiet(before) && quiet(after) && before.dispatches == after.dispatches && before.wakes == after.wakes;
  });
}

// The same in a fiber: when this returns, all others that could run have run and wait for something.
inline void wait_until_others_wait() {
  blocking([&rt = detail::this_agent().fiber().runtime()] { wait_until_all_wait(rt); });
}

// Starts a fiber that calls `function`, and returns its handle when that waits. On a plain thread.
template <class F>
auto spawn_until_it_waits(runtime& rt, F function) {
  std::atomic<bool> begun{false};
  auto handle = rt.spawn([&begun, function = std::move(function)]() mutable {
    begun = true;
    return function();
  });
  wait_until([&] { return begun.load(); });
  wait_until_all_wait(rt);
  return handle;
}

// `operation` waits, and a request to stop ends that. On a plain thread.
template <class F>
void expect_stop_ends(runtime& rt, F operation) {
  auto handle = spawn_until_it_waits(rt, std::move(operation));
  EXPECT_FALSE(handle.done()) << "it did not wait";
  handle.request_stop();
  EXPECT_THROW(handle.get(), operation_cancelled);
}

// `operation` in a fiber that was asked to stop before throws. On a plain thread.
template <class F>
void expect_stop_forbids(runtime& rt, F operation) {
  std::atomic<bool> go{false};
  auto handle = rt.spawn([&] {
    wait_until([&] { return go.load(); });
    operation();
  });
  handle.request_stop();
  go = true;
  EXPECT_THROW(handle.get(), operation_cancelled);
}

// Takes the one thread of the pool until the end of its life.
class busy_pool {
 public:
  busy_pool()  // here, because clang 16 to 18 refuse a call of spawn that initializes a member at its declaration
      : fiber_(spawn([this] {
          blocking([this] {
            begun_.release();
            gate_.acquire();
          });
        })) {
    wait_until([&] { return begun_.try_acquire(); });
  }
  ~busy_pool() { end(); }
  busy_pool(const busy_pool&) = delete;
  busy_pool& operator=(const busy_pool&) = delete;

  void end() {
    if (!fiber_.joinable()) return;
    gate_.release();
    fiber_.get();
  }

 private:
  std::binary_semaphore begun_{0}, gate_{0};
  join_handle<> fiber_;
};

// Whether `handle`'s fiber waits for the pool. Lets time pass until it does or has ended.
template <class Handle>
bool waits_for_the_pool(const Handle& handle) {
  const auto& rt = detail::this_agent().fiber().runtime();
  wait_until([&] { return handle.done() || rt.metrics().blocking_queued > 0; });
  return !handle.done();
}

}  // namespace ulexite::test
