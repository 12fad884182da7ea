#include <ulexite/runtime/task/fiber_ids.hpp>

#include <atomic>

namespace ulexite::detail {

std::uint64_t fiber_ids::reserve(std::uint64_t count) noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);  // counter
}

void fiber_ids::refill() noexcept {
  constexpr std::uint64_t block = 128;
  next_ = reserve(block);
  last_ = next_ + block;
}

}  // namespace ulexite::detail
