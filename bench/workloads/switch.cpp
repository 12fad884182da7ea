// Switching from fiber to fiber.

#include "common.hpp"

namespace bench {

void yields(int fibers, int n) {
  const stopwatch watch;
  team(fibers, [=](int role) {
    for (int i = 0; i < n / fibers; ++i) {
      float_work(role);
      ux::this_fiber::yield();
    }
  });
  watch.per("ns_per_yield", n);
}

}  // namespace bench
