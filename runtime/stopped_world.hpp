#pragma once

#include <ulexite/runtime/fiber_view.hpp>
#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/runtime.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace ulexite {

namespace detail {
void for_each_fiber(const runtime_state& home, void (*visit)(void* data, const fiber_view& fiber), void* data) noexcept;
}

// Calls visit(const fiber_view&) for every fiber of the runtime that has not ended. It takes no lock, allocates nothing
// and makes no system call, so a collector may call it while it has stopped all threads at any point. Exact if nothing
// runs, because the world is stopped or all threads are; else only `id`, `state` and the place are to be relied on, and a
// fiber may be missed or met as it ends. `visit` must not wait, nor throw. Any thread.
template <class Visit>
  requires std::is_invocable_v<Visit&, const fiber_view&>
void for_each_fiber(runtime& of, Visit&& visit) noexcept {
  detail::for_each_fiber(
      detail::state_of(of),
      [](void* data, const fiber_view& fiber) {
        std::invoke(*static_cast<std::remove_reference_t<Visit>*>(data), fiber);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(visit))));
}

// The bounds of the fiber's stack in which `address` lies, of any runtime; nullopt if it lies in none. For a thread that a
// collector has stopped: which fiber's stack it stands on. Async-signal-safe.
struct stack_bounds {
  const void* low;   // the lowest byte
  const void* high;  // one past the highest
};
[[nodiscard]] std::optional<stack_bounds> stack_around(const void* address) noexcept;

// Thrown when the world could not be stopped: std::errc::timed_out, with words that name those who did not come.
class late_fibers : public std::system_error {
 public:
  // For stopped_world only.
  late_fibers(std::vector<std::uint64_t> ids, const std::string& words)
      : std::system_error(std::make_error_code(std::errc::timed_out), words), ids_(std::move(ids)) {}
  // Their numbers; 0 for a worker between two fibers.
  [[nodiscard]] const std::vector<std::uint64_t>& ids() const noexcept { return ids_; }

 private:
  std::vector<std::uint64_t> ids_;
};

// While it lives, no fiber of the runtime runs but the one that made it: every worker stands between two fibers, so all
// registers lie on the fibers' stacks. Plain threads, and calls in blocking and block_in_place, run on. Its maker may not
// wait (no_suspend). From a fiber of the runtime or from outside.
//
// Fibers come to a stop when they wait, yield or end, and in this_fiber::make_room; a loop that does none of that is
// late.
class [[nodiscard]] stopped_world {
 public:
  // Waits until they stand, really blocking its thread. Throws late_fibers after `patience`, and
  // then nothing is stopped; usage_error if the world is stopped already
  // or another is about to stop it; std::bad_alloc.
  explicit stopped_world(runtime& of, std::chrono::nanoseconds patience = std::chrono::seconds(1));
  // They run again.
  ~stopped_world();
  stopped_world(const stopped_world&) = delete;
  stopped_world& operator=(const stopped_world&) = delete;

 private:
  const no_suspend stays_{"a stopped_world"};
  detail::runtime_state& home_;
};

}  // namespace ulexite
