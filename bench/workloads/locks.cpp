// A mutex: alone, contended, and among many fibers that can run.

#include "common.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace bench {

void locks(int fibers, int n) {
  const stopwatch watch;
  ux::mutex mutex;
  long counter = 0;
  team(fibers, [&](int role) {
    for (int i = 0; i < n / fibers; ++i) {
      float_work(role);
      const std::lock_guard lock(mutex);
      ++counter;
    }
  });
  require(counter == n / fibers * fibers, "mutex: increments lost");
  watch.per("ns_per_lock", n);
}

// 200 fibers take it for a microsecond each time, and 1,000 others only take turns. If a holder waited for a turn of
// all of these, nobody else could have the mutex meanwhile.
void convoy(int n) {
  constexpr int users = 200, others = 1000;
  ux::mutex mutex;
  std::vector<std::int64_t> waits;
  std::atomic<bool> ended{false};
  const auto use = [&] {
    const std::int64_t start = now_ns();
    const std::lock_guard lock(mutex);
    waits.push_back(now_ns() - start);
    compute(1'000);
    if (waits.size() >= static_cast<std::size_t>(n)) ended = true;
  };
  const stopwatch watch;
  team(users + others, [&](int role) {
    for (; !ended; ux::this_fiber::yield()) {
      float_work(role);
      compute(20'000);
      if (role < users) use();
    }
  });
  watch.per("ns_per_lock", n);
  put_percentiles("waited", waits);
}

}  // namespace bench
