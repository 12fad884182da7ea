// Sleeping, and being woken from outside.

#include "common.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace bench {

using namespace std::chrono_literals;

void timers(int n) {
  std::vector<std::int64_t> late(static_cast<std::size_t>(n));
  ux::task_group group;
  std::uint64_t state = 42;  // Knuth's MMIX generator, as in the other programs
  const stopwatch watch;
  for (auto& lateness : late) {
    float_work(0);
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto time = std::chrono::microseconds((state >> 33) % 1000000);
    group.spawn([&lateness, time] {
      float_work(1);
      const std::int64_t start = now_ns();
      ux::this_fiber::sleep_for(time);
      lateness = now_ns() - start - std::chrono::nanoseconds(time).count();
    });
  }
  group.wait();
  put("wall_ms", watch.elapsed() / 1e6);
  put_percentiles("late", late);
}

void sleep1ms(int n) {
  std::vector<std::int64_t> over;
  for (int i = 0; i < n; ++i) {
    float_work(0);
    const std::int64_t start = now_ns();
    ux::this_fiber::sleep_for(1ms);
    over.push_back(now_ns() - start - 1'000'000);
  }
  put_percentiles("over", over);
}

void wake(int n) {
  ux::channel<std::int64_t> sent(1);
  std::thread outside([&] {
    for (int i = 0; i < n; ++i) {
      std::this_thread::sleep_for(1ms);
      sent.send(now_ns());
    }
    sent.close();
  });
  std::vector<std::int64_t> latencies;
  for (std::int64_t time : sent) {
    latencies.push_back(now_ns() - time);
    float_work(0);
  }
  outside.join();
  put_percentiles("wake", latencies);
}

}  // namespace bench
