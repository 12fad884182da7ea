#include <ulexite/fiber/stack_pool.hpp>

#include <ulexite/fiber/memory_advice.hpp>
#include <ulexite/fiber/stack_guard.hpp>
#include <ulexite/fiber/stack_overflow.hpp>
#include <ulexite/fiber/stack_slab.hpp>
#include <ulexite/fiber/switch.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

#if ULEXITE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace ulexite::detail {
namespace {

constexpr std::size_t smallest = std::size_t{16} << 10;
constexpr std::size_t largest = std::size_t{1} << 30;

// Frames that never returned (of an abandoned fiber, or by longjmp) leave poisoned red zones, which the stack's next
// user would hit.
void unpoison([[maybe_unused]] const stack& stack) noexcept {
#if ULEXITE_ASAN
  ASAN_UNPOISON_MEMORY_REGION(stack.low, stack.size());
#endif
}

#if ULEXITE_ASAN
// With detect_stack_use_after_return the variables are on a fake stack, and only the real stack points to its frames.
__attribute__((no_sanitize("address"))) void register_fake_frames(const stack& stack, const context& left) noexcept {
  if (!left.fake_stack) return;
  for (auto* at = static_cast<void* const*>(left.frame); static_cast<const void*>(at) < stack.high; ++at) {
    void *begin = nullptr, *end = nullptr;
    if (__asan_addr_is_in_fake_stack(left.fake_stack, *at, &begin, &end))
      __lsan_register_root_region(begin, static_cast<std::size_t>(static_cast<char*>(end) - static_cast<char*>(begin)));
  }
}
#endif

// Merges two lists that ascend by address.
stack* merge(stack* a, stack* b) noexcept {
  stack* list = nullptr;
  stack** end = &list;
  while (a && b) {
    stack*& least = a->low < b->low ? a : b;
    *end = least;
    end = &least->next;
    least = least->next;
  }
  *end = a ? a : b;
  return list;
}

// Sorts a list by address. In place, because there may be no memory. Bin i holds 2^i stacks or none, as in binary
// counting.
stack* sort(stack* list) noexcept {
  stack* bins[64] = {};
  while (list) {
    stack* carry = std::exchange(list, list->next);
    carry->next = nullptr;
    std::size_t i = 0;
    for (; bins[i]; ++i) carry = merge(std::exchange(bins[i], nullptr), carry);
    bins[i] = carry;
  }
  for (stack* const bin : bins) list = merge(bin, list);
  return list;
}

// Commits the topmost page, which each fiber needs, of stacks without memory. For many stacks together this costs less
// than page faults (docs/memory.md).
void prefault(stack* list) noexcept {
  iovec tops[64];
  while (list) {
    std::size_t count = 0;
    for (; list && count < std::size(tops); list = list->next) {
      if (list->dirty) continue;
      tops[count++] = {list->high - page_size(), page_size()};
      list->dirty = true;
    }
    advise({tops, count}, MADV_POPULATE_WRITE);  // if it fails, the pages fault later
  }
}

// The start of the memory that may be returned to the system. Real guards survive MADV_DONTNEED, a canary does not.
char* memory_of(const stack& stack) noexcept { return stack.canary ? stack.low : stack.low - stack.guard; }

// The last stack of the run from `first` on that is contiguous in memory and in the list.
stack* end_of_run(stack* first) noexcept {
  while (first->next && memory_of(*first->next) == first->high) first = first->next;
  return first;
}

}  // namespace

// All possible pools: 16 KiB to 1 GiB. Never destroyed, because threads may use them until the process ends.
struct stack_pool::table {
  static constexpr std::size_t count = std::bit_width(largest / smallest);

  template <std::size_t... Index>
  explicit constexpr table(std::index_sequence<Index...>) noexcept : pools{stack_pool(smallest << Index)...} {}

  stack_pool pools[count];

  static table all;
};

constinit stack_pool::table stack_pool::table::all{std::make_index_sequence<stack_pool::table::count>()};

stack_pool& stack_pool::of_size(std::size_t size) {
  static_assert(std::is_trivially_destructible_v<table>);
  if (size > largest) {
    throw std::invalid_argument("a stack of " + std::to_string(size) + " bytes is larger than the limit of " +
                                std::to_string(largest) + " bytes");
  }
  const std::size_t rounded = std::bit_ceil(std::max({size, smallest, 4 * page_size()}));
  return table::all.pools[std::countr_zero(rounded / smallest)];
}

stack* stack_pool::take(std::size_t count) noexcept {
  stack* list = nullptr;
  stack** end = &list;
  count -= take_unused(count, end);
  while (count > 0) {
    const std::size_t made = carve(count, end);
    count -= made;
    if (made == 0 && !grow()) break;
  }
  *end = nullptr;
  if (list && list->next) prefault(list);
  return list;
}

void stack_pool::ensure_one() {
  if (carved() == 0 && !grow()) {
    throw std::system_error(errno, std::generic_category(),
                            "ulexite: the first stack of " + std::to_string(stack_size_) + " bytes");
  }
}

// Appends up to `count` stacks of the pool at `end`; returns how many.
std::size_t stack_pool::take_unused(std::size_t count, stack**& end) noexcept {
  const std::lock_guard guard(lock_);
  std::size_t taken = 0;
  for (stack** const layer : {&recent_, &rested_, &clean_}) {
    for (; taken < count && *layer; ++taken) {
      *end = *layer;
      *layer = (*layer)->next;
      end = &(*end)->next;
    }
  }
  unused_ -= taken;
  return taken;
}

// Appends up to `count` new stacks of the current slab at `end`; returns how many. Only choosing them needs the lock.
std::size_t stack_pool::carve(std::size_t count, stack**& end) noexcept {
  std::unique_lock guard(lock_);
  stack_slab* const slab = slab_;
  const std::size_t first = next_;
  const std::size_t made = slab ? std::min(count, slab->count() - first) : 0;
  next_ += made;
  carved_ += made;
  guard.unlock();

  if (made == 0) return 0;
  for (*end = slab->carve(first, made); *end;) end = &(*end)->next;
  return made;
}

// Ensures that the slab has stacks to carve. False if the system refuses a new slab.
bool stack_pool::grow() noexcept {
  const std::lock_guard growing(growing_);
  {
    const std::lock_guard guard(lock_);
    if (slab_ && next_ < slab_->count()) return true;  // another thread was first
  }
  stack_slab* const made = stack_slab::make(stack_size_);
  if (!made) return false;
  const std::lock_guard guard(lock_);
  slab_ = made;
  next_ = 0;
  return true;
}

void stack_pool::give(stack* list) noexcept {
  if (!list) return;
  std::size_t count = 0;
  stack* last = nullptr;
  for (stack* each = list; each; each = each->next) {
    check_stack_canary(*each);
    each->owner.store(nullptr, std::memory_order_relaxed);  // nothing to publish
    each->dirty = true;
    unpoison(*each);
    last = each;
    ++count;
  }
  const std::lock_guard guard(lock_);
  last->next = recent_;
  recent_ = list;
  unused_ += count;
}

void stack_pool::keep(stack& abandoned, [[maybe_unused]] const context& left) noexcept {
  forget_context(abandoned);
#if ULEXITE_ASAN
  __lsan_register_root_region(abandoned.low, abandoned.size());
  register_fake_frames(abandoned, left);
#endif
  stack_pool& home = of_size(abandoned.size());
  const std::lock_guard guard(home.lock_);
  --home.carved_;
}

std::size_t stack_pool::trim(bool all) noexcept {
  stack* rested = nullptr;
  stack* recent = nullptr;
  {
    const std::lock_guard guard(lock_);
    std::swap(rested, rested_);
    std::swap(recent, recent_);
    if (!all) std::swap(recent, rested_);  // these stay until the next trim
  }
  return clean(merge(sort(rested), sort(recent)));
}

// Returns the memory of stacks to the system, neighbours with one system call. Puts each run of stacks into the pool
// again as soon as it is done. `list` ascends by address and is in no layer.
std::size_t stack_pool::clean(stack* list) noexcept {
  std::size_t cleaned = 0;
  while (list) {
    stack* const first = list;
    stack* const last = end_of_run(first);
    list = std::exchange(last->next, nullptr);

    char* const begin = memory_of(*first);
    if (::madvise(begin, static_cast<std::size_t>(last->high - begin), MADV_DONTNEED) == 0) {
      for (stack* each = first; each; each = each->next, ++cleaned) each->dirty = false;
    }  // otherwise the memory is locked, and stays so: there is no use in trying again

    const std::lock_guard guard(lock_);
    last->next = clean_;
    clean_ = first;
  }
  return cleaned;
}

std::size_t stack_pool::trim_all(bool all) noexcept {
  std::size_t cleaned = 0;
  for (stack_pool& pool : table::all.pools) cleaned += pool.trim(all);
  return cleaned;
}

std::size_t stack_pool::carved() const noexcept {
  const std::lock_guard guard(lock_);
  return carved_;
}

std::size_t stack_pool::unused() const noexcept {
  const std::lock_guard guard(lock_);
  return unused_;
}

}  // namespace ulexite::detail
