#pragma once

// All that can divert a worker from its next step, in one word for others and one for the worker itself. Each step
// tests with one load whether there is a reason for it. The words are here because parallel loops check them too.
//
// State
//   requests_   the requests of other threads. Each stands until it is withdrawn, by the thread that made it, or by the
//            worker if `request` says so.
//   noted_   what the worker itself has noted. Owner only.
//
// Pairings
//   A  held_range.hpp A and B (runtime/worker_parts).
//   B  ask, release  ->  at_dispatch, acquire: a worker that sees the request sees what it is about, as its recorder.
//   C  end and halt are asked before their caller takes the parker's mutex, or under it  ->  a worker that has
//      left its sleep has held that mutex later. So at_safepoint sees the request. And: withdraw, release  ->  the
//      worker that finds no request, acquire, comes after all that was done while there was one.

#include <atomic>
#include <cstdint>

namespace ulexite::detail {

// The reasons, in the order in which a worker answers them: first those at a safepoint (scheduler::handle_safepoint),
// then those at a dispatch (scheduler::answer_requests), then those at a switch, a spawn and a wake.
enum class request : std::uint32_t {
  halt = 1,          // the world is being stopped, or is
  end = 2,           // the workers must end, even if there is work. Never withdrawn
  yield = 8,         // the running fiber should yield at its next chance. A hint, withdrawn at the next dispatch
  inspected = 16,    // an inspection may hold the next fiber (inspection.hpp)
  maintenance = 64,  // the worker must go to its main stack. Withdrawn at the next dispatch, and noted
  controlled = 128,  // a deterministic run. The worker both asks it and notes it
  traced = 256,      // the events here are recorded. A hint, noted at the next dispatch
  bound = 512,       // noted: the running fiber is bound (scheduler::run_bound)
  slot_due = 1'024,  // noted: the next filled slot is to be announced (wake_policy.hpp)
};
constexpr std::uint32_t operator|(request a, request b) noexcept {
  return static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b);
}
constexpr std::uint32_t operator|(std::uint32_t a, request b) noexcept { return a | static_cast<std::uint32_t>(b); }

class interrupts {
 public:
  // The steps at which the owner asks whether there is a reason to do something else, or more.
  [[nodiscard]] bool at_safepoint() const noexcept {
    return (requests_.load(std::memory_order_acquire) & (request::halt | request::end)) != 0;  // C
  }
  [[nodiscard]] bool at_dispatch() const noexcept {
    return (requests_.load(std::memory_order_acquire) & at_dispatch_) != 0;  // A, B
  }
  // The main stack chooses the next.
  [[nodiscard]] bool at_switch() const noexcept {
    return (noted_ & (request::maintenance | request::controlled | request::bound)) != 0;
  }
  [[nodiscard]] bool at_spawn() const noexcept {
    return (noted_ & (request::controlled | request::traced | request::bound)) != 0;
  }
  [[nodiscard]] bool at_wake() const noexcept { return (noted_ & (request::traced | request::slot_due)) != 0; }

  [[nodiscard]] bool noted(request what) const noexcept { return (noted_ & static_cast<std::uint32_t>(what)) != 0; }
  void note(request what, bool on = true) noexcept {
    const auto bit = static_cast<std::uint32_t>(what);
    noted_ = on ? noted_ | bit : noted_ & ~bit;
  }

  // Any thread, below.

  [[nodiscard]] bool asked(request what) const noexcept {
    return (requests_.load(std::memory_order_relaxed) & static_cast<std::uint32_t>(what)) != 0;  // hint
  }
  void ask(request what) noexcept {
    requests_.fetch_or(static_cast<std::uint32_t>(what), std::memory_order_release);  // A, ordered by its fence; B, C
  }
  void withdraw(request what) noexcept {
    requests_.fetch_and(~static_cast<std::uint32_t>(what), std::memory_order_release);  // A, C
  }

 private:
  static constexpr std::uint32_t at_dispatch_ = request::halt | request::end | request::yield | request::inspected |
                                                request::maintenance | request::controlled | request::traced;

  std::atomic<std::uint32_t> requests_{0};
  std::uint32_t noted_ = 0;
};

}  // namespace ulexite::detail
