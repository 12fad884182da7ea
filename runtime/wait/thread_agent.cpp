#include <ulexite/runtime/wait/thread_agent.hpp>

#include <utility>

namespace ulexite::detail {

bool thread_agent::block(std::int64_t deadline) noexcept {
  std::unique_lock lock(mutex_);
  const auto resumed = [this] { return std::exchange(resumed_, false); };
  if (deadline != no_deadline) {
    const auto until = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline));
    return condition_.wait_until(lock, until, resumed);
  }
  count(!resumed_);
  condition_.wait(lock, resumed);
  return true;
}

}  // namespace ulexite::detail
