#include <ulexite/fiber/memory_advice.hpp>
#include <ulexite/fiber/stack_guard.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/worker/idle_stacks.hpp>
#include <ulexite/runtime/worker/inspection.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace ulexite::detail {
namespace {

constexpr std::chrono::milliseconds never = std::chrono::hours(24 * 365);  // the time of a wait counts to 49 days
constexpr std::size_t held_at_a_time = 4 * 1024;                           // bytes of blocks, for one heavy fence

// Returns the touched pages below the frame at which the fiber was left. The page of that frame stays. Returns the
// number of bytes.
std::size_t trim_below(const stack& stack, const void* frame) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(frame);
  const auto low = reinterpret_cast<std::uintptr_t>(stack.low), high = reinterpret_cast<std::uintptr_t>(stack.high);
  if (stack.canary || at < low || at >= high) return 0;
  const std::uintptr_t end = at & ~std::uintptr_t{page_size() - 1};
  const std::uintptr_t deepest = high - stack_high_water(stack);
  if (deepest >= end) return 0;
  const std::size_t bytes = end - deepest;
  return ::madvise(reinterpret_cast<void*>(deepest), bytes, MADV_DONTNEED) == 0 ? bytes : 0;
}

// Distinguishes the wait of a fiber from its others: by its time, by what it waits for, and by the frame that it left.
// The time is not enough, because workers read the clock only now and then. Two waits of one frame for one object in
// one reading of the clock have the same mark: then the second is trimmed only after the fiber has waited again.
std::uint16_t mark_of(const fiber& waiting) noexcept {
  const std::uint64_t sum = waiting.wait_since + 31 * reinterpret_cast<std::uintptr_t>(waiting.next) +
                            961 * reinterpret_cast<std::uintptr_t>(waiting.saved.frame);
  return static_cast<std::uint16_t>(sum * 0x9e37'79b9'7f4a'7c15 >> 48);  // multiplicative hashing (Knuth, 1973)
}

}  // namespace

idle_stacks::idle_stacks(runtime_state& rt, std::chrono::milliseconds after) noexcept
    : runtime_(rt),
      after_(inspection::possible() ? std::chrono::nanoseconds(std::min(after, never)).count() : 0),
      last_walk_(now_ns()) {}

void idle_stacks::step(std::int64_t now) noexcept {
  if (after_ == 0) return;
  if (!walking_) {
    if (now - last_walk_ < after_ / 2) return;
    last_walk_ = now;
    at_ = runtime_.tasks->first();
    walking_ = true;
  }
  std::unique_lock alone(runtime_.world.inspecting, std::try_to_lock);
  if (!alone) return;  // a dump, for which the monitor does not wait
  inspection look(runtime_, std::move(alone));
  now_ = static_cast<std::uint32_t>(now / 1'000'000);
  for (std::size_t looks = 1;; ++looks) {
    agent* const block = task_pool::next(at_);
    walking_ = block != nullptr;
    if (!walking_) return;
    if (idle_wait(*block)) {
      look.hold(*block, held_at_a_time);
      trim(*block);
    } else if (looks % tuning::blocks_per_look != 0) {
      continue;
    }
    if (now_ns() - now >= tuning::idle_stacks_portion) return;
  }
}

// Fibers began their waits at the latest at `last_busy`. A walk that starts when such a wait is long enough is the last
// one that can find something.
std::int64_t idle_stacks::next_step(std::int64_t last_busy) const noexcept {
  if (walking_) return 0;
  const std::int64_t last_needed = last_busy + after_ + 1'000'000;  // waits are counted in milliseconds
  if (after_ == 0 || last_walk_ >= last_needed) return no_deadline;
  return std::max(last_needed, last_walk_ + after_ / 2);
}

// The mark of the wait in which the fiber of that block has not been trimmed, if it lasts long enough; or nothing. A
// hint, or exact for a fiber that is held.
std::optional<std::uint16_t> idle_stacks::idle_wait(agent& block) const noexcept {
  raw_record raw;
  copy_record(block, raw);
  const fiber& seen = raw.content();
  if (!raw.owner().in_use || seen.state.phase() != fiber_phase::resumable || !block.word.waits()) return {};
  if (waited_since(seen.wait_since, now_) < after_ / 1'000'000) return {};
  const std::uint16_t mark = mark_of(seen);
  return seen.trimmed_in == mark ? std::nullopt : std::optional(mark);
}

void idle_stacks::trim(agent& idle) noexcept {
  // The copy comes first: the fiber may have ended before the fence, and then its memory belongs to the pool.
  const std::optional<std::uint16_t> wait = idle_wait(idle);
  if (fiber& held = idle.fiber(); wait && held.state.is_suspended()) {
    bytes_.add(trim_below(*held.current_stack, held.saved.frame));
    held.trimmed_in = *wait;
  }
}

}  // namespace ulexite::detail
