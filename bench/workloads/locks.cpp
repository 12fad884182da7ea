// A mutex, alone and contended.

#include "common.hpp"

#include <mutex>

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

}  // namespace bench
