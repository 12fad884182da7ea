#pragma once

#include <ulexite/base/job.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/fiber_state.hpp>
#include <ulexite/fiber/stack.hpp>

#include <cstdint>

namespace ulexite::detail {

// The members of a fiber that a switch touches, kept together.
struct resumable_job : job {
  // Called by the fiber before the switch. The fiber is in no queue until its wait is claimed, so `next` may hold the
  // object.
  void set_wait(const void* object, std::uint8_t bits, std::uint32_t since) noexcept {
    next = static_cast<job*>(const_cast<void*>(object));
    wait_bits = bits;
    wait_since = since;
  }
  // While times are measured: it is runnable since `stamp`, a time of the measurer's. The note of its last wait is
  // dropped, because that wait is over.
  void stamp_runnable(std::uint32_t stamp) noexcept {
    wait_bits = wait_bits == 0 || wait_bits == fresh_runnable ? fresh_runnable : runnable;
    wait_since = stamp;
  }
  // Whether that was noted since the last call; then `stamp` is that time.
  [[nodiscard]] bool take_runnable(std::uint32_t& stamp) noexcept {
    if (wait_bits < fresh_runnable) return false;
    wait_bits = wait_bits == fresh_runnable ? 0 : has_waited;
    stamp = wait_since;
    return true;
  }

  // In wait_bits; no waits have these.
  static constexpr std::uint8_t has_waited = 0xf4, fresh_runnable = 0xf8, runnable = 0xfc;

  context saved;  // while it is resumable; of a coroutine that waits, the frame is its stackless_wait
  fiber_state state;
  std::uint8_t wait_bits = 0;      // the last wait, in this padding and in `next`: see set_wait
  std::uint16_t trimmed_in = 0;    // the mark of the wait in which idle_stacks trimmed its stack
  std::uint32_t wait_since = 0;    // milliseconds of the steady clock, when its worker last read the clock
  stack* current_stack = nullptr;  // its stack, while it is started
};

// A computation that can be suspended and resumed. It has no stack until it first runs, and returns the stack when it
// ends; a coroutine also while it waits. In a queue its null `run` distinguishes it from a plain job.
struct fiber : resumable_job, fiber_identity {
  [[nodiscard]] static bool is_fiber(const job& runnable) noexcept { return runnable.run == nullptr; }
};

}  // namespace ulexite::detail
