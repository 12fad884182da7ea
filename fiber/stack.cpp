#include <ulexite/fiber/stack.hpp>

#include <ulexite/fiber/stack_guard.hpp>

#include <algorithm>

#include <sys/mman.h>

namespace ulexite::detail {

// An untouched page is not resident, and stacks are touched from the top down. So the lowest resident page is the
// deepest touched one.
std::size_t stack_high_water(const stack& stack) noexcept {
  const std::size_t page = page_size();
  unsigned char resident[1024];
  char* from = stack.low;
  while (from < stack.high) {
    const std::size_t bytes = std::min(static_cast<std::size_t>(stack.high - from), sizeof resident * page);
    if (::mincore(from, bytes, resident) != 0) return stack.size();  // unknown: report the whole stack
    for (std::size_t i = 0; i < bytes / page; ++i) {
      if (resident[i] & 1) return static_cast<std::size_t>(stack.high - from) - i * page;
    }
    from += bytes;
  }
  return 0;
}

}  // namespace ulexite::detail
