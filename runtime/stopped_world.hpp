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
void for_each_fiber(const runtime_state& rt, void (*visit)(void* data, const fiber_view& fiber), void* data) noexcept;
}

// Calls visit(const fiber_view&) for every fiber of the runtime that has not ended. Takes no lock, allocates nothing
// and makes no system call, so a collector may call it after it has stopped all threads at any point. The result is
// exact if nothing runs, because the world or all threads are stopped; `holder` is told only in a stopped world.
// Otherwise only `id`, `state` and the place are reliable, and a fiber may be missed, or visited while it ends. `visit`
// must not wait and must not throw. Any thread.
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

// The bounds of the fiber's stack that contains `address`, of any runtime; nullopt if no stack does. A collector finds
// with it the stack on which a stopped thread runs. Async-signal-safe.
struct stack_bounds {
  const void* low = nullptr;   // the lowest byte
  const void* high = nullptr;  // one past the highest
};
[[nodiscard]] std::optional<stack_bounds> stack_around(const void* address) noexcept;

// Thrown if the world could not be stopped in time: std::errc::timed_out. The message names the fibers that did not
// stop.
class late_fibers : public std::system_error {
 public:
  // The numbers of these fibers; 0 for a worker between two fibers.
  [[nodiscard]] const std::vector<std::uint64_t>& ids() const noexcept { return ids_; }

 private:
  friend class stopped_world;
  late_fibers(std::vector<std::uint64_t> ids, const std::string& words)
      : std::system_error(std::make_error_code(std::errc::timed_out), words), ids_(std::move(ids)) {}

  std::vector<std::uint64_t> ids_;
};

// Stops all fibers of a runtime until it is destroyed, except the fiber that made it. Every worker is stopped between
// two fibers, so all registers of fibers are on their stacks. Plain threads, and calls in blocking and block_in_place,
// continue. The fiber that made it must not wait (no_suspend_scope). A fiber of the runtime or a thread outside may
// make it.
//
// Fibers stop when they wait, yield or end, and in this_fiber::yield_if_requested. A write to a file is waited for. A
// loop that does none of these delays the stop.
class [[nodiscard]] stopped_world {
 public:
  // Blocks the calling thread until all workers are stopped. Throws late_fibers after `patience`, and then nothing is
  // stopped. Throws usage_error if the world is stopped already or another thread is about to stop it; std::bad_alloc.
  explicit stopped_world(runtime& of, std::chrono::nanoseconds patience = std::chrono::seconds(1));
  // Lets the fibers run again.
  ~stopped_world();
  stopped_world(const stopped_world&) = delete;
  stopped_world& operator=(const stopped_world&) = delete;

 private:
  const no_suspend_scope stays_{"a stopped_world"};
  detail::runtime_state& runtime_;
};

}  // namespace ulexite
