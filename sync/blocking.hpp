#pragma once

// Calls that block the thread they run on: file I/O, foreign libraries, long computations.

#include <ulexite/runtime/task/closure_task.hpp>
#include <ulexite/runtime/threads/blocking_pool.hpp>
#include <ulexite/sync/event.hpp>

#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

namespace ulexite {
namespace detail {

// A call, in the frame of the fiber that waits for its end.
class blocking_call : private blocking_work {
 public:
  blocking_call() = default;
  blocking_call(const blocking_call&) = delete;
  blocking_call& operator=(const blocking_call&) = delete;

  // Gives the call to the pool. False: there is none, and the call was made here. A cancellation point.
  [[nodiscard]] bool begin();
  // Takes the call back. False: it has begun.
  [[nodiscard]] bool withdraw() noexcept;
  // Set at the end of a call that the pool has.
  [[nodiscard]] ulexite::event& ended() noexcept { return done_; }

 protected:
  ~blocking_call() = default;

  // Waits for the end of a call that has begun, or takes it back and throws a cancellation.
  void wait_or_withdraw();
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  virtual void call() = 0;
  void* run() noexcept final;
  void finish(void*) noexcept final { done_.set(); }

  ulexite::event done_;
  std::exception_ptr failure_;
};

template <class F>
class blocking_function final : public blocking_call {
 public:
  using result = std::invoke_result_t<F&>;
  static_assert(transferable_result<result>, "the result of blocking must be void, a reference T& or movable");

  explicit blocking_function(F& function) noexcept : function_(function) {}

  result run_and_wait() {
    if (begin()) wait_or_withdraw();
    return take();
  }
  // The result, or the exception, at the end of the call.
  result take() {
    rethrow_failure();
    if constexpr (std::is_reference_v<result>) {
      return static_cast<result>(value_->get());
    } else if constexpr (!std::is_void_v<result>) {
      return std::move(*value_);
    }
  }

 private:
  void call() override {
    if constexpr (std::is_void_v<result>) {
      function_();
    } else {
      value_.emplace(function_());
    }
  }

  F& function_;
  result_place<typename result_task<result>::value_type> value_;
};

}  // namespace detail

// Calls function(arguments...) on a thread that may block, and returns its result or throws its exception. The calling
// fiber waits; other fibers run. The pool of such threads grows as needed, up to runtime_options::blocking_threads;
// further calls wait in a queue. The function runs as on a plain thread. It may use channels and locks, and blocks in
// them. It does not see the caller's this_fiber and fiber_local. Nothing is copied: references stay valid, because the
// caller waits.
//
// A cancellation point while the call waits for a thread; a cancelled call is not made. The caller always waits for the
// end of a call that has begun: limit it by its own means. Throws std::system_error if the system refuses the first
// thread. On a plain thread, and in a job, it is an ordinary call.
template <class F, class... A>
  requires std::is_invocable_v<F, A...>
std::invoke_result_t<F, A...> blocking(F&& function, A&&... arguments) {
  static_assert(!detail::is_coroutine<std::invoke_result_t<F, A...>>,
                "the coroutine would not run on the other thread: pass a function");
  auto call = [&]() -> decltype(auto) { return std::invoke(std::forward<F>(function), std::forward<A>(arguments)...); };
  return detail::blocking_function<decltype(call)>(call).run_and_wait();
}

}  // namespace ulexite
