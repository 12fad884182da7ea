#pragma once

// The state of a task<T>'s coroutine, and how one coroutine continues another.

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/task/task.hpp>

#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ulexite::detail {

// The part of a promise that does not depend on the result's type.
struct promise_base {
  enum class stage : std::uint8_t {
    unstarted,
    starting,   // its first run is under way, called by its parent
    suspended,  // its parent has returned meanwhile, and continues by `parent`
    ended,
  };

  std::coroutine_handle<> parent;  // continues when this one ends; null: none does. First, for coroutine_frame
  task* fiber = nullptr;           // its waits give up this fiber's stack; null: they block the caller
  stage at = stage::unstarted;

  struct final_awaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      promise_base& self = ended.promise();
      const bool parent_waits = std::exchange(self.at, stage::ended) == stage::suspended;
      return parent_waits && self.parent ? self.parent : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] final_awaiter final_suspend() const noexcept { return {}; }
};

// A result: not there yet, a value, or an exception.
template <class T>
class coroutine_result {
  using held = std::conditional_t<std::is_reference_v<T>, std::reference_wrapper<std::remove_reference_t<T>>, T>;

 public:
  template <class U = T>
    requires std::is_constructible_v<held, U>
  void return_value(U&& value) {
    outcome_.template emplace<1>(std::forward<U>(value));
  }
  void unhandled_exception() noexcept { outcome_.template emplace<2>(std::current_exception()); }
  T take() {
    if (outcome_.index() == 2) std::rethrow_exception(std::exchange(std::get<2>(outcome_), nullptr));
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(std::get<1>(outcome_).get());
    } else {
      return std::move(std::get<1>(outcome_));
    }
  }

 private:
  std::variant<std::monostate, held, std::exception_ptr> outcome_;
};
template <>
class coroutine_result<void> {
 public:
  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }
  void take() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  std::exception_ptr failure_;
};

// The promise of a coroutine that is to be started. Throws usage_error if there is no coroutine, or it was started.
template <class Promise>
Promise& startable(std::coroutine_handle<Promise> coroutine) {
  if (!coroutine) throw usage_error("a task without a coroutine was awaited");
  if (coroutine.promise().at != promise_base::stage::unstarted) throw usage_error("a task was awaited twice");
  return coroutine.promise();
}

// Runs a child until it first waits. True: it has ended. This is a call, not a symmetric transfer, because g++ makes
// such a transfer a jump only from -O2 on: before, a loop over children that do not wait would overflow the stack. No
// other thread can continue the child before this returns, because its wait is published by the caller's caller.
inline bool run_child(std::coroutine_handle<> child, promise_base& its) noexcept {
  its.at = promise_base::stage::starting;
  child.resume();
  if (its.at == promise_base::stage::ended) return true;
  its.at = promise_base::stage::suspended;
  return false;
}

}  // namespace ulexite::detail
