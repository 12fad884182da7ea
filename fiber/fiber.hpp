#pragma once

#include <ulexite/base/job.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/fiber_state.hpp>
#include <ulexite/fiber/stack.hpp>

namespace ulexite::detail {

// What a switch touches of a fiber, kept together.
struct resumable_job : job {
  context saved;  // while it is resumable
  fiber_state state;
  stack* standing = nullptr;  // while it is started
};

// A computation that can be left and resumed. It has no stack until it first runs, and gives it back when it ends. In a
// queue it is told from a plain job by its `run`, which is null.
struct fiber : resumable_job, fiber_identity {
  [[nodiscard]] static bool is_fiber(const job& runnable) noexcept { return runnable.run == nullptr; }
};

}  // namespace ulexite::detail
