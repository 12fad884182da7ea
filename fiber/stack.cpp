#include <ulexite/fiber/stack.hpp>

#include <ulexite/fiber/stack_guard.hpp>

#include <algorithm>

#include <sys/mman.h>

namespace ulexite::detail {

// A page of a stack that was never touched is not resident, and stacks are touched from the top down: so the lowest
// resident page is the deepest.
std::size_t stack_high_water(const stack& stack) noexcept {
  const std::size_t page = page_size();
  unsigned char resident[1024];
  char* from = stack.low;
  while (from < stack.high) {
    const std::size_t bytes = std::min(static_cast<std::size_t>(stack.high - from), sizeof resident * page);
    if (::mincore(from, bytes, resident) != 0) return stack.size();  // unknown: claim no less than all
    for (std::size_t i = 0; i < bytes / page; ++i) {
      if (resident[i] & 1) return static_cast<std::size_t>(stack.high - from) - i * page;
    }
    from += bytes;
  }
  return 0;
}

}  // namespace ulexite::detail
