#pragma once

// Numbers for new fibers, unique in the process. Each worker takes them in blocks, because all threads share one
// counter.

#include <cstdint>

namespace ulexite::detail {

class fiber_ids {
 public:
  // Whether there is a number at hand.
  [[nodiscard]] bool any() const noexcept { return next_ != last_; }
  // The next number at hand. There is one.
  std::uint64_t take() noexcept { return next_++; }
  void refill() noexcept;

  // The first of `count` numbers that no other caller gets. Any thread.
  static std::uint64_t reserve(std::uint64_t count) noexcept;

 private:
  std::uint64_t next_ = 0, last_ = 0;
};

}  // namespace ulexite::detail
