#include <ulexite/runtime/task/fiber_ids.hpp>

#include <atomic>

namespace ulexite::detail {

// 64 bits never run out, so no number is used twice in a process.
std::uint64_t fiber_ids::reserve(std::uint64_t count) noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);  // counter
}

// With blocks of 128 the shared counter's line moves between processors once for 128 spawns.
void fiber_ids::refill() noexcept {
  constexpr std::uint64_t block = 128;
  next_ = reserve(block);
  last_ = next_ + block;
}

}  // namespace ulexite::detail
