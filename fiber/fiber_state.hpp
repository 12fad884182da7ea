#pragma once

// Whether a fiber may be resumed: the flag around the switch. No thread ever waits on it. A fiber is published to its
// wakers only after its context was saved. So a resumer that meets another state than `resumable` has met a defect of
// the runtime, and the functions return false.
//
// State
//   state_   fresh <-> running <-> resumable, running -> dead. Written by the thread that runs the fiber, or that has
//            just left it. A fresh fiber has no stack: it has not begun, or it is a coroutine that waits. A resumer
//            holds the only reference that may be resumed, so it sees the latest value.
//
// Pairings
//   A  saved stores resumable, release  ->  resume, or is_suspended, loads it, acquire: its caller sees the saved
//      context.
//   B  unstacked stores fresh, release  ->  start loads it, acquire: its caller sees where the coroutine continues.

#include <ulexite/base/atomics.hpp>

#include <cstdint>

namespace ulexite::detail {

enum class fiber_phase : std::uint8_t { fresh, running, resumable, dead };

constexpr const char* to_string(fiber_phase phase) noexcept {
  switch (phase) {
    case fiber_phase::fresh: return "fresh";
    case fiber_phase::running: return "running";
    case fiber_phase::resumable: return "resumable";
    case fiber_phase::dead: return "dead";
  }
  return "corrupt";
}

template <class Atomics = std_atomics>
class basic_fiber_state {
 public:
  // Any thread. Exact for the thread that runs the fiber or may resume it, a hint for others.
  [[nodiscard]] fiber_phase phase() const noexcept { return state_.load(Atomics::relaxed); }  // hint

  // fresh -> running. False, and no change, from any other phase. Called by the thread that will run the fiber.
  [[nodiscard]] bool start() noexcept { return advance(fiber_phase::fresh); }

  // running -> resumable, once the context is saved. Called by the thread that has just left the fiber.
  void saved() noexcept { state_.store(fiber_phase::resumable, Atomics::release); }  // A

  // running -> fresh: it needs its stack no longer, and continues on another. Called by the thread that runs the fiber.
  void unstacked() noexcept { state_.store(fiber_phase::fresh, Atomics::release); }  // B

  // resumable -> running. False, and no change, from any other phase: another thread runs it, or it is dead. Called by
  // the thread that will run the fiber.
  [[nodiscard]] bool resume() noexcept { return advance(fiber_phase::resumable); }

  // Whether it is suspended, and stays so as long as it is held (held_range.hpp). Then its context can be read. Called
  // by the thread that holds it.
  [[nodiscard]] bool is_suspended() const noexcept {
    return state_.load(Atomics::acquire) == fiber_phase::resumable;  // A
  }

  // running -> dead. Called by the thread that runs the fiber.
  void finish() noexcept { state_.store(fiber_phase::dead, Atomics::relaxed); }  // nothing more to publish

 private:
  // A load and a store, because only one thread may try at a time. Chaos builds detect a second one with an exchange.
  bool advance(fiber_phase from) noexcept {
#if defined(ULEXITE_CHAOS) && ULEXITE_CHAOS
    return state_.compare_exchange_strong(from, fiber_phase::running, Atomics::acquire, Atomics::relaxed);  // A, B
#else
    if (state_.load(Atomics::acquire) != from) return false;  // A, B
    state_.store(fiber_phase::running, Atomics::relaxed);     // the running thread's own
    return true;
#endif
  }

  typename Atomics::template atomic<fiber_phase> state_{fiber_phase::fresh};
};

using fiber_state = basic_fiber_state<>;

}  // namespace ulexite::detail
