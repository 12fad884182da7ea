#pragma once

// A deterministic run has one thread. A controller makes every choice for it and moves its clock. All layers see this
// seam; the strategies are behind it (testing/explore.hpp).
//
// Outside a deterministic run the cost is one load of controlled_somewhere, on slow paths only. Fast paths have no
// cost: a value that they load anyway sends a deterministic run to the slow path. These values are the fiber's budget,
// which is 1, and the worker's interrupts.
//
// State
//   controlled_somewhere   whether the process has a deterministic run. A hint: it decides only whether to ask for the
//                          thread's controller.

#include <ulexite/base/standard.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ulexite::detail {

class simulated_network;

// Makes the choices of a deterministic run. Its functions are called on the thread of the run.
class controller {
 public:
  // A candidate of pick that is not a fiber: time passes until the next timer, although fibers could run.
  static constexpr std::uint64_t passing_time = UINT64_MAX;

  enum class moment : std::uint8_t {
    operation,  // the running fiber, the first candidate, has done something and does not have to wait
    left,       // it waits, has yielded or has ended; the candidates are in the order in which they became runnable
  };

  // Picks the fiber, by number (0: a job), that continues.
  virtual std::size_t pick(std::span<const std::uint64_t> candidates, moment moment) noexcept = 0;
  // Makes any other choice: a number below `bound`, which is above 0.
  virtual std::uint32_t choose(std::uint32_t bound) noexcept = 0;
  // The fiber has yielded.
  virtual void yielded(std::uint64_t fiber) noexcept = 0;
  // Called when nothing can run before `next` (INT64_MAX: nothing at all). True: `now` was set to `next`, and the
  // caller must fire the timers.
  virtual bool idle(std::int64_t next) noexcept = 0;

  std::int64_t now = 0;             // ns
  std::int64_t overtake_until = 0;  // timers until then may fire although fibers can run: passing_time is a candidate
  std::uint64_t fibers = 0;         // assigned numbers
  bool over = false;                // the run ends here, and its fibers are abandoned
  simulated_network* network = nullptr;  // the network of the run's sockets, or null

 protected:
  ~controller() = default;
};

// Visible in each case, so that a program which is compiled with hidden visibility shares it with the library.
[[gnu::visibility("default")]] inline constinit std::atomic<bool> controlled_somewhere{false};

// The controller of the calling thread's run; null if there is none.
controller* this_controller() noexcept;
void set_this_controller(controller* own) noexcept;

inline bool controlled() noexcept {
  return controlled_somewhere.load(std::memory_order_relaxed) && this_controller();  // hint: the thread's own decides
}

// Nanoseconds of the steady clock, or of the run.
std::int64_t controlled_clock_ns() noexcept;

// Ends an operation that never waits. Such an operation does not count down the fiber's budget. In a deterministic run
// other fibers may run here. Declare it first in a function: its destructor then runs last, with no spin lock held, and
// the operation's object is no longer touched.
class yield_point {
 public:
  yield_point() = default;
  yield_point(const yield_point&) = delete;
  yield_point& operator=(const yield_point&) = delete;
  ~yield_point() {
    if (controlled_somewhere.load(std::memory_order_relaxed)) [[unlikely]]  // hint: the thread's own decides
      pass();
  }

 private:
  static void pass() noexcept;  // runtime/wait/suspend.cpp
};

}  // namespace ulexite::detail
