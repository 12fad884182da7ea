#pragma once

#include <ulexite/base/job.hpp>
#include <ulexite/fiber/context.hpp>
#include <ulexite/fiber/fiber_state.hpp>
#include <ulexite/fiber/stack.hpp>

namespace ulexite::detail {

// A computation that can be left and resumed. It has no stack until it first runs, and gives it back when it ends. In a
// queue it is told from a plain job by its `run`, which is null.
struct fiber : job, fiber_identity {
  context saved;              // while it is resumable
  stack* standing = nullptr;  // while it is started
  fiber_state state;

  [[nodiscard]] static bool is_fiber(const job& runnable) noexcept { return runnable.run == nullptr; }
};

}  // namespace ulexite::detail
