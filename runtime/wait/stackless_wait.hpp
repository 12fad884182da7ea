#pragma once

// The wait of a coroutine: what suspend.hpp describes for a fiber, in two halves. The first is called while the fiber
// still runs. Then the coroutine returns to the bottom of its stack, where the fiber gives the stack up and its wait is
// published (scheduler::leave_stack). Once the wait is claimed, the fiber begins again on another stack with the second
// half, and continues the coroutine.
//
// So nobody can resume a coroutine that has not yet returned from its await_suspend, as nobody resumes a fiber whose
// context is not saved. Checked by tests/model/coroutine_model.cpp.

#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/wait/agent.hpp>
#include <ulexite/runtime/wait/time.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>
#include <ulexite/runtime/wait/wait_word.hpp>

#include <coroutine>
#include <cstdint>
#include <utility>

namespace ulexite::detail {

class task;

// The beginning of the frame of a task's coroutine: the two functions of the ABI, and the first member of its promise.
struct coroutine_frame {
  void (*resume)(void*);
  void (*destroy)(void*);
  const coroutine_frame* parent;  // the coroutine that awaits this one, or null
};

// One wait, in the awaiter, and so in the coroutine's frame.
class stackless_wait {
 public:
  stackless_wait(const stackless_wait&) = delete;
  stackless_wait& operator=(const stackless_wait&) = delete;

  // Called on the fiber's stack when its wait was claimed. True: the coroutine continues. False: begin() was called
  // again.
  [[nodiscard]] virtual bool resumed(agent& self) noexcept = 0;

  std::coroutine_handle<> continues;  // once the wait is over

 protected:
  stackless_wait(wait_mode mode) noexcept : object_(mode.object), bits_(mode.bits) {}
  virtual ~stackless_wait() {
    if (timer_) [[unlikely]]
      drop_timer();
  }

  [[nodiscard]] bool is_cancellable() const noexcept { return mode().is_cancellable(); }
  [[nodiscard]] wait_mode mode() const noexcept { return {object_, bits_}; }
  // The next wait is of another kind, or at another object.
  void set_mode(wait_mode mode) noexcept {
    object_ = mode.object;
    bits_ = mode.bits;
  }
  // Whether a timer may end the wait that has begun.
  [[nodiscard]] bool is_timed() const noexcept { return timed_; }
  // Whether a wait until `deadline` needs a timer, for this deadline or for the agent's own.
  [[nodiscard]] bool needs_timer(const agent& self, std::int64_t deadline) const noexcept {
    return deadline != no_deadline || (is_cancellable() && self.deadline != no_deadline);
  }
  // Makes the timer. Called before the wait enters a queue. Throws std::bad_alloc.
  void provide_timer();
  // The first half. `held` is the lock of the queue that the waiter is in, or null and the agent's word is prepared;
  // the lock is released once no claimer can miss the wait. A wait that needs a timer has one.
  void begin(agent& self, spin_lock* held, std::int64_t deadline) noexcept {
    held_ = held;
    prepared_ = held == nullptr;
    cancellable_ = is_cancellable() && !self.shielded;
    timed_ = needs_timer(self, deadline);
    if (timed_) [[unlikely]]
      arm(self, deadline);
  }
  // Instead of a wait: others may run first.
  void begin_yield() noexcept { yields_ = true; }
  // The operation had no wait. False: others run first.
  [[nodiscard]] bool goes_on(agent& self) noexcept;
  // The second half. A wait that its agent's deadline has ended was cancelled, as in suspend.hpp. May be called again
  // after the last one.
  wake_reason end(agent& self) noexcept { return timed_ ? end_timed(self) : self.word.reason(); }

  // Called in a catch block of resumed(): stores the exception in the fiber's record, until the coroutine rethrows it.
  static void keep_exception(agent& self) noexcept;
  [[noreturn]] static void rethrow_kept();

 private:
  friend class scheduler;
  // Publishes the wait of a fiber that no longer needs its stack. False: the fiber need not wait, and the caller makes
  // it runnable. The order is that of scheduler::complete_switch. The fiber may run elsewhere from the commit on, and
  // this wait may be gone, so what is needed later is read before. State is fiber_state, of a layer unknown here.
  template <class State>
  [[nodiscard]] bool publish(State& state, wait_word& word) noexcept {
    const bool yields = std::exchange(yields_, false);
    const bool prepared = prepared_, cancellable = cancellable_;
    spin_lock* const held = yields ? nullptr : held_;
    state.unstacked();
    const bool waits = !yields && word.commit(prepared, cancellable);
    if (held) held->unlock();
    return waits;
  }
  // As suspend.hpp describes it: with its timer, and without a stop that a shield hides.
  [[nodiscard]] wait_mode mode_now() const noexcept {
    const wait_mode heard = mode().cancellable_if(cancellable_);
    return timed_ ? heard.with_timer() : heard;
  }
  struct timer;
  void arm(agent& self, std::int64_t deadline) noexcept;
  wake_reason end_timed(agent& self) noexcept;
  void drop_timer() noexcept;

  const void* object_;
  spin_lock* held_ = nullptr;
  timer* timer_ = nullptr;  // owned
  std::uint8_t bits_;
  bool timed_ = false;
  bool prepared_ = false;
  bool cancellable_ = false;  // no shield hides a stop
  bool yields_ = false;
};

// The running fiber gives its stack up until `wait` is over. Called at the bottom of the stack. From here on the fiber
// may run, and end, elsewhere.
void leave_stack(task& self, stackless_wait& wait) noexcept;

}  // namespace ulexite::detail
