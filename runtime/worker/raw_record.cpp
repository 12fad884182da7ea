#include <ulexite/runtime/worker/raw_record.hpp>

#include <atomic>
#include <cstddef>
#include <iterator>

namespace ulexite::detail {

__attribute__((noinline, no_sanitize("address", "thread"))) void copy_record(const agent& block,
                                                                             raw_record& into) noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);  // the earlier reads are older
  const auto* const from = reinterpret_cast<const volatile raw_record::word*>(&block);
  raw_record::word* const to = into.words;
  for (std::size_t i = 0; i < std::size(into.words); ++i) to[i] = from[i];
  std::atomic_thread_fence(std::memory_order_acquire);  // the next reads are younger
}

}  // namespace ulexite::detail
