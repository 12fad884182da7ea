#include <ulexite/base/controller.hpp>
#include <ulexite/base/random.hpp>
#include <ulexite/runtime/wait/channel_head.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/thread_agent.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#define ULEXITE_OPAQUE [[gnu::noinline, gnu::noipa]]
#else
#define ULEXITE_OPAQUE [[gnu::noinline]]
#endif

namespace ulexite::detail {

// 24 bytes: any loader has room for them. Not static, and kept by the linker, where inline assembly names it.
#if defined(__x86_64__) && !defined(__ILP32__)
[[gnu::tls_model("initial-exec"), gnu::used]] constinit thread_local current_execution own_execution;
#else
[[gnu::tls_model("initial-exec")]] static constinit thread_local current_execution own_execution;
#endif

constinit std::atomic<std::size_t> large_channel_bytes{0};

namespace {

// Only for plain threads, because workers always have an agent.
[[gnu::cold, gnu::noinline]] agent& make_thread_agent() noexcept {
  thread_local thread_agent plain;
  this_thread_execution().agent = &plain;
  return plain;
}

// The smallest fraction that results in `number`.
std::uint32_t least_fraction(std::uint32_t number, std::uint32_t bound) noexcept {
  return static_cast<std::uint32_t>(((std::uint64_t{number} << 32) + bound - 1) / bound);
}

constinit thread_local random dice{0};
constinit thread_local const runtime_state* made_for = nullptr;
constinit thread_local runtime_state* spawn_runtime = nullptr;

}  // namespace

ULEXITE_OPAQUE current_execution& this_thread_execution() noexcept {
  current_execution* address = &own_execution;
  asm volatile("" : "+r"(address));
  return *address;
}

ULEXITE_OPAQUE const runtime_state* runtime_of_thread() noexcept { return made_for; }

void set_runtime_of_thread(const runtime_state& rt) noexcept { made_for = &rt; }

ULEXITE_OPAQUE runtime_state* spawn_runtime_of_thread() noexcept { return spawn_runtime; }

void set_spawn_runtime_of_thread(runtime_state* rt) noexcept { spawn_runtime = rt; }

ULEXITE_OPAQUE scheduler* this_scheduler() noexcept {
  current_execution* address = &own_execution;
  asm volatile("" : "+r"(address));
  return address->scheduler;
}

ULEXITE_OPAQUE agent& this_agent() noexcept {
  current_execution* address = &own_execution;
  asm volatile("" : "+r"(address));
  return address->agent ? *address->agent : make_thread_agent();
}

ULEXITE_OPAQUE caller this_caller() noexcept {
  current_execution* address = &own_execution;
  asm volatile("" : "+r"(address));
  return {address->agent ? address->agent : &make_thread_agent(), address->scheduler};
}

std::uint32_t random_below(std::uint32_t bound) noexcept {
  return static_cast<std::uint32_t>(std::uint64_t{random_fraction(bound)} * bound >> 32);
}

// Each thread has its own generator; all begin with one seed.
ULEXITE_OPAQUE std::uint32_t random_fraction(std::uint32_t bound) noexcept {
  if (controlled_somewhere.load(std::memory_order_relaxed)) [[unlikely]]  // hint
    if (controller* const own = this_controller()) return least_fraction(own->choose(bound), bound);
  random* address = &dice;
  asm volatile("" : "+r"(address));
  return static_cast<std::uint32_t>(address->next() >> 32);
}

}  // namespace ulexite::detail
