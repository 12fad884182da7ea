#include <ulexite/base/controller.hpp>

#include <chrono>
#include <mutex>

namespace ulexite::detail {
namespace {

constinit thread_local controller* own_controller = nullptr;

}  // namespace

// A fiber of a deterministic run stays on its thread. Other fibers get null on any thread.
[[gnu::noinline]] controller* this_controller() noexcept {
  controller** address = &own_controller;
  asm volatile("" : "+r"(address));
  return *address;
}

// The lock: a run that ends and one that begins on another thread must not store in the wrong order.
[[gnu::noinline]] void set_this_controller(controller* own) noexcept {
  static constinit std::mutex guard;
  static constinit int runs = 0;
  if (!own_controller == !own) {
    own_controller = own;
    return;
  }
  own_controller = own;
  const std::lock_guard lock(guard);
  runs += own ? 1 : -1;
  controlled_somewhere.store(runs > 0, std::memory_order_relaxed);  // hint
}

std::int64_t controlled_clock_ns() noexcept {
  const controller* const own = this_controller();
  return own ? own->now : std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace ulexite::detail
