#pragma once

// One branch of a fork: a function that the forking fiber will call itself, unless another worker takes it first. It is
// in the forking fiber's frame, and in a deque of its worker (fork_queue::offer). Until it is taken it costs neither
// memory nor a locked instruction. This is the lazy task creation of Mohr, Kranz and Halstead (1990), in the form of
// Frigo, Leiserson and Randall's Cilk-5 (1998). One thing differs: a fiber that waits for a stolen branch is suspended,
// and its worker runs no other branches on top of its stack. A taken branch becomes a fiber, which may wait for
// anything.

#include <ulexite/runtime/fork/branch_outcome.hpp>
#include <ulexite/runtime/fork/fork_queue.hpp>
#include <ulexite/runtime/task/closure_task.hpp>
#include <ulexite/runtime/wait/current.hpp>

#include <cstdint>
#include <utility>

namespace ulexite::detail {

class branch {
 public:
  branch(const branch&) = delete;
  branch& operator=(const branch&) = delete;

  // The taker's side. Makes the branch's fiber, which the taker must run next. Null if there is no room for another
  // fiber; then the forking fiber calls the function itself.
  task* start(runtime_state& rt) noexcept;

  // Whether the outcome of the branch is known. Called by the forking fiber, or on its thread.
  [[nodiscard]] bool outcome_known() const noexcept { return outcome_.known() != 0; }

 protected:
  using maker = result_task<void>& (*)(runtime_state& rt, branch& taken);

  // The branch's fiber inherits from `forking` its deadline, its shield and its stack size.
  branch(maker make, agent* forking) noexcept
      : make_(make),
        forking_(forking),
        deadline_(forking ? forking->deadline : no_deadline),
        shielded_(forking && forking->shielded) {}
  ~branch() = default;

  // The forking fiber's side, once another worker has taken the branch. Waits for the end of the branch's fiber, and
  // returns this fiber, for release; null if the taker has declined the branch. Asks it to stop immediately if `stop`,
  // otherwise when the caller is asked to stop.
  result_task<void>* wait(bool stop) noexcept;

 private:
  static constexpr std::uintptr_t declined = 1;

  [[nodiscard]] std::uintptr_t wait_for_outcome() noexcept;
  void publish_outcome(runtime_state& rt, std::uintptr_t outcome) noexcept;

  const maker make_;             // makes the fiber of a taken branch
  agent* const forking_;         // null on a plain thread, where the branch is not offered
  const std::int64_t deadline_;  // a copy of the forking fiber's, which the taker must not read
  const bool shielded_;          // as above
  branch_outcome<agent> outcome_;
};

// A branch that calls a function. The branches of one fiber end in the reverse order of their construction. Each ends
// by a finish, a try_take_back that succeeds, or a run_while_offered that throws.
template <class F>
class forked final : public branch {
 public:
  // Keeps `function` by reference. Offers it to the other workers, if there is room and the caller is a fiber.
  explicit forked(F& function) noexcept : forked(function, inlined_execution()) {}

  // Calls `first` while others may take the branch. If `first` throws, the branch is dropped.
  template <class First>
  void run_while_offered(First&& first) {
    try {
      call_function(first);
    } catch (...) {
      drop();
      throw;
    }
  }

  // Calls the function here, or waits until its fiber has ended. Throws its exception. Yields first, if this fiber has
  // not yielded for long.
  void finish() {
    if (try_take_back()) {
      if (offered_) offered_->yield_if_requested();
      call_function(function_);
    } else {
      join_stolen();
    }
  }

  // As finish, after a try_take_back that has failed.
  void join_stolen() {
    if (result_task<void>* const elsewhere = wait(false)) {
      const release_at_exit last{*elsewhere};
      elsewhere->take();
    } else {
      call_function(function_);
    }
  }

  // Takes the branch back. False if another worker has taken it.
  [[nodiscard]] bool try_take_back() noexcept {
    if (!offered_) return true;
    return inlined_execution().forks == offered_ && offered_->try_pop(*this);
  }

 private:
  struct release_at_exit {
    task& released;
    ~release_at_exit() { released.release(); }
  };

  // Drops the branch: the function is not called. If it has begun, asks it to stop and waits for its end. Its exception
  // is lost, because another one is being thrown.
  void drop() noexcept {
    if (try_take_back()) return;
    if (result_task<void>* const elsewhere = wait(true)) {
      elsewhere->take_failure();
      elsewhere->release();
    }
  }

  forked(F& function, const current_execution& here) noexcept
      : branch(make, here.forks ? here.agent : nullptr), function_(function) {
    if (here.forks && here.agent->kind == agent_kind::fiber && here.forks->offer(*this)) offered_ = here.forks;
  }

  static result_task<void>& make(runtime_state& rt, branch& taken) {
    return make_task(rt, [&function = static_cast<forked&>(taken).function_] { call_function(function); });
  }

  F& function_;
  fork_queue* offered_ = nullptr;  // the queue that has it, unless it was taken
};

}  // namespace ulexite::detail
