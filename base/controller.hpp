#pragma once

// A deterministic run: one thread, of which another part of the program makes every choice and moves the clock. This is
// the seam that all layers see; the strategies stand behind it (testing/explore.hpp).
//
// Outside such a run the price is one load of controlled_somewhere, on ways that are long already. On the short ways it
// is nothing: there a value that is loaded anyway sends a deterministic run the long way. Those values are the mutex's
// free word, the worker's numbers for fibers, its dispatches until housekeeping, and the requests to it.
//
// State
//   controlled_somewhere   is there such a run in the process? A hint: it decides only whether to ask for the thread's.
//   free_word              what lock expects in a free mutex: 0, or while there are such runs a word that is never
//                          stored, so that each lock takes the long way, which asks. A hint.

#include <ulexite/base/standard.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ulexite::detail {

class simulated_network;

// Who decides in a deterministic run. Its functions are called on the thread of the run.
class controller {
 public:
  // A candidate of pick that is no fiber: time passes until the next timer, although fibers could run.
  static constexpr std::uint64_t passing_time = UINT64_MAX;

  enum class moment : std::uint8_t {
    operation,  // the running fiber, the first candidate, has done something and need not wait
    left,       // it waits, has yielded or has ended; the candidates stand in the order in which they became runnable
  };

  // Which of these fibers, by number (0: a job), goes on.
  virtual std::size_t pick(std::span<const std::uint64_t> candidates, moment moment) noexcept = 0;
  // Any other choice: a number below `bound`, which is above 0.
  virtual std::uint32_t choose(std::uint32_t bound) noexcept = 0;
  // That fiber has let others go first of its own will.
  virtual void yielded(std::uint64_t fiber) noexcept = 0;
  // Nothing can run before `next` (INT64_MAX: nothing at all). True: `now` was put there, and the timers are to fire.
  virtual bool idle(std::int64_t next) noexcept = 0;

  std::int64_t now = 0;             // ns
  std::int64_t overtake_until = 0;  // timers until then may fire although fibers can run: passing_time is a candidate
  std::uint64_t fibers = 0;         // numbers that were given
  bool over = false;                // the run is to be left as it stands
  simulated_network* network = nullptr;  // of which the run's sockets are, if there is one

 protected:
  ~controller() = default;
};

inline constinit std::atomic<bool> controlled_somewhere{false};
inline constinit std::atomic<std::uintptr_t> free_word{0};

// Of the run that the calling thread is in; null in none.
controller* this_controller() noexcept;
void set_this_controller(controller* own) noexcept;

inline bool controlled() noexcept {
  return controlled_somewhere.load(std::memory_order_relaxed) && this_controller();  // hint: the thread's own decides
}

// Nanoseconds of the steady clock, or of the run.
std::int64_t controlled_clock_ns() noexcept;

// Ends an operation that never waits, and so does not count down the fiber's budget: in a deterministic run others may
// go first here. Declared before all else in a function, so that nothing of the operation's object is touched later,
// and no spin lock is held.
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
  static void pass() noexcept;  // runtime/worker/suspend.cpp
};

}  // namespace ulexite::detail
