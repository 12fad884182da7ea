#include <ulexite/base/controller.hpp>

#include <chrono>

namespace ulexite::detail {
namespace {

constinit thread_local controller* own_controller = nullptr;

// Aligned agents have no such address.
constexpr std::uintptr_t never_free = 2;

}  // namespace

// A fiber of a deterministic run stays on its thread. Other fibers get null on any thread.
[[gnu::noinline]] controller* this_controller() noexcept {
  controller** address = &own_controller;
  asm volatile("" : "+r"(address));
  return *address;
}

[[gnu::noinline]] void set_this_controller(controller* own) noexcept {
  static constinit std::atomic<int> runs{0};
  if (!own_controller == !own) {
    own_controller = own;
    return;
  }
  own_controller = own;
  const int change = own ? 1 : -1;
  const bool any = runs.fetch_add(change, std::memory_order_relaxed) + change > 0;  // counter
  controlled_somewhere.store(any, std::memory_order_relaxed);                       // hint
  free_word.store(any ? never_free : 0, std::memory_order_relaxed);                 // hint
}

std::int64_t controlled_clock_ns() noexcept {
  const controller* const own = this_controller();
  return own ? own->now : std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace ulexite::detail
