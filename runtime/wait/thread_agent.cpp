#include <ulexite/runtime/wait/thread_agent.hpp>

#include <utility>

namespace ulexite::detail {

bool thread_agent::block(std::int64_t deadline) noexcept {
  std::unique_lock lock(mutex_);
  const auto signalled = [this] { return resumed_ || poked_; };
  if (deadline == no_deadline) {
    count(!signalled());
    condition_.wait(lock, signalled);
  } else {
    const auto until = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline));
    if (!condition_.wait_until(lock, until, signalled)) return false;
  }
  poked_ = false;
  return std::exchange(resumed_, false);
}

}  // namespace ulexite::detail
