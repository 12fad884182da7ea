#pragma once

// What the test of allocations measures with. Its program replaces operator new by one that counts.

#include "support/runtime_fixture.hpp"

#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/task_group.hpp>

#include <atomic>
#include <cstddef>

namespace ulexite::test {

inline std::atomic<long> allocations{0};

class NoAllocation : public WorkersTest {
 protected:
  // Each keeps a worker until all have one: what starts or is used first allocates.
  static void start_all_workers() {
    std::atomic<std::size_t> waiting{0};
    task_group all;
    for (std::size_t i = 0; i < GetParam(); ++i)
      all.spawn([&] {
        ++waiting;
        EXPECT_TRUE(hog_until([&] { return waiting == GetParam(); }));
        this_fiber::sleep_for(1us);  // and a worker's first timer
      });
    all.wait();
  }
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the sanitizer brings its own operator new";
  }
  // Grows its buffer to the final size. While two fibers keep step, it might not fill up before the measurement.
  static void fill_once(channel<int>& values) {
    int value = 0;
    while (values.try_send(value) == channel_status::ok) {
    }
    while (values.try_receive(value) == channel_status::ok) {
    }
  }
  // Two fibers do left(i) and right(i), in step; after some warm-up, all without an allocation.
  template <class L, class R>
  void expect_none(L left, R right) {
    run([&] {
      start_all_workers();
      std::atomic<int> ready{0};
      std::atomic<bool> measure{false};
      task_group all;
      const auto both = [&](auto& side) {
        for (int i = 0; i < 2000; ++i) side(i);
        ++ready;
        wait_until([&] { return measure.load(); });
        for (int i = 0; i < 2000; ++i) side(i);
      };
      all.spawn([&] { both(left); });
      all.spawn([&] { both(right); });
      wait_until([&] { return ready == 2; });
      const long before = allocations;
      measure = true;
      all.wait();
      EXPECT_EQ(allocations - before, 0);
    });
  }
};

}  // namespace ulexite::test
