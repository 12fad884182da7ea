#pragma once

// One branch of a fork: a function that the fiber which forked will call itself, unless another worker takes it first.
// It stands in that fiber's frame, and in a deque of its worker (fork_queue::offer). Until it is taken it costs neither
// memory nor a locked instruction: the lazy task creation of Mohr, Kranz and Halstead (1990), in the form of Frigo,
// Leiserson and Randall's Cilk-5 (1998), but that a worker which waits for a stolen branch leaves its fiber instead of
// working on other branches on top of its stack. A branch that was taken becomes a fiber, which may wait for anything.

#include <ulexite/runtime/fork/branch_fate.hpp>
#include <ulexite/runtime/fork/fork_queue.hpp>
#include <ulexite/runtime/task/task.hpp>
#include <ulexite/runtime/wait/current.hpp>

#include <cstdint>
#include <functional>
#include <utility>

namespace ulexite::detail {

class branch {
 public:
  branch(const branch&) = delete;
  branch& operator=(const branch&) = delete;

  // The taker's side: its fiber, which is to be run next; or null when there is no room for one more, and whoever
  // forked has to call the function himself.
  task* start(runtime_state& home) noexcept;

  // Is it known what has become of it? The forking fiber, and who runs on its thread.
  [[nodiscard]] bool fate_known() const noexcept { return fate_.known() != 0; }

 protected:
  using maker = result_task<void>& (*)(runtime_state& home, branch& taken);

  // What the fiber that will be made has of `forking`: how long it may run, what it hears of, and its room.
  branch(maker make, agent* forking) noexcept
      : make_(make),
        forking_(forking),
        deadline_(forking ? forking->deadline : no_deadline),
        shielded_(forking && forking->shielded) {}
  ~branch() = default;

  // The side of the fiber that forked, once another has taken the branch. Waits until that has ended, and returns its
  // fiber, for release; null if the branch was given back. It is asked to stop at once if `stop`, or when the caller
  // is.
  result_task<void>* wait(bool stop) noexcept;

 private:
  static constexpr std::uintptr_t given_back = 1;

  [[nodiscard]] std::uintptr_t wait_for_fate() noexcept;
  void publish_fate(runtime_state& home, std::uintptr_t fate) noexcept;

  const maker make_;
  agent* const forking_;
  const std::int64_t deadline_;
  const bool shielded_;
  branch_fate<agent> fate_;
};

// A branch that calls a function. Those of one fiber end in the reverse order of their construction, each by a finish,
// a take_back that succeeds, or a meanwhile that throws.
template <class F>
class forked final : public branch {
 public:
  // `function` is kept by reference. It is offered to the other workers by the construction, if there is room and the
  // caller is a fiber.
  explicit forked(F& function) noexcept : forked(function, inlined_execution()) {}

  // Calls `first` while others may take the branch. If that throws, the function need not be called any more.
  template <class First>
  void meanwhile(First&& first) {
    try {
      std::invoke(first);
    } catch (...) {
      drop();
      throw;
    }
  }

  // Has the function called here, or waits until it has been called. Throws what it threw. Lets others run before, if
  // this fiber has not let go for long.
  void finish() {
    if (take_back()) {
      if (offered_) offered_->yield_if_requested();
      std::invoke(function_);
    } else {
      finish_taken();
    }
  }

  // The same after a take_back that has failed.
  void finish_taken() {
    if (result_task<void>* const elsewhere = wait(false)) {
      const release_at_exit last{*elsewhere};
      elsewhere->take();
    } else {
      std::invoke(function_);
    }
  }

  // False: another has it, or has had it.
  [[nodiscard]] bool take_back() noexcept {
    if (!offered_) return true;
    return inlined_execution().forks == offered_ && offered_->take_back(*this);
  }

 private:
  struct release_at_exit {
    task& released;
    ~release_at_exit() { released.release(); }
  };

  // The function need not be called any more. If it has begun, it is asked to stop, and waited for; what it throws is
  // lost, for something else is being thrown.
  void drop() noexcept {
    if (take_back()) return;
    if (result_task<void>* const elsewhere = wait(true)) {
      elsewhere->take_failure();
      elsewhere->release();
    }
  }

  forked(F& function, const current_execution& here) noexcept
      : branch(make, here.forks ? here.agent : nullptr), function_(function) {
    if (here.forks && here.agent->kind == agent_kind::fiber && here.forks->offer(*this)) offered_ = here.forks;
  }

  static result_task<void>& make(runtime_state& home, branch& taken) {
    return make_task(home, [&function = static_cast<forked&>(taken).function_] { std::invoke(function); });
  }

  F& function_;
  fork_queue* offered_ = nullptr;  // that it is in, unless it was taken
};

}  // namespace ulexite::detail
