#include <ulexite/base/error.hpp>
#include <ulexite/sync/latch.hpp>

#include <string>

namespace ulexite {

void latch::refuse(std::ptrdiff_t count) { throw usage_error("latch: a count of " + std::to_string(count)); }

// The caller that makes the count zero still needs the latch. No waiter passes before it sets the event.
void latch::count_down(std::ptrdiff_t n) {
  const detail::yield_point at_exit;
  std::ptrdiff_t count = count_.load(std::memory_order_relaxed);  // the exchange decides
  do {
    if (n < 0 || n > count)
      throw usage_error("latch::count_down: " + std::to_string(n) + " of " + std::to_string(count));
  } while (!count_.compare_exchange_weak(count, count - n, std::memory_order_acq_rel,  // A
                                         std::memory_order_relaxed));  // the exchange decides
  if (count == n && n > 0) open_.set();
}

}  // namespace ulexite
