#pragma once

#include <ulexite/sync/future.hpp>

#include <concepts>
#include <functional>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

namespace ulexite {

template <class>
class packaged_task;

// A function that gives its result to a future, with std::packaged_task's interface. Movable. One fiber or plain thread
// may use it at a time. Without a function (never had one, or moved from) its operations throw
// std::future_error(no_state).
template <class R, class... A>
class packaged_task<R(A...)> {
 public:
  packaged_task() noexcept = default;
  // Stores a copy of the function. Throws std::bad_alloc, and exceptions of the copy or move.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, packaged_task> && std::is_invocable_r_v<R, std::decay_t<F>&, A...>)
  explicit packaged_task(F&& function)
      : function_(std::make_unique<held<std::decay_t<F>>>(std::forward<F>(function))),
        promise_(std::make_unique<promise<R>>()) {}

  // Whether there is a function.
  [[nodiscard]] bool valid() const noexcept { return function_ != nullptr; }

  // The future of the result. Throws std::future_error(future_already_retrieved) the second time.
  [[nodiscard]] future<R> get_future() { return checked().get_future(); }

  // Calls the function, and satisfies the future with its result or exception. If it was called before, throws
  // std::future_error(promise_already_satisfied) without a call.
  void operator()(A... arguments) {
    promise<R>& result = checked();
    if (std::exchange(called_, true)) detail::throw_future_error(std::future_errc::promise_already_satisfied);
    try {
      if constexpr (std::is_void_v<R>) {
        function_->call(std::forward<A>(arguments)...);
        result.set_value();
      } else {
        result.set_value(function_->call(std::forward<A>(arguments)...));
      }
    } catch (...) {
      result.set_exception(std::current_exception());
    }
  }

  // Prepares for another call, with a new future. The old future throws broken_promise if there was no call. Throws
  // std::bad_alloc.
  void reset() {
    checked();
    promise_ = std::make_unique<promise<R>>();
    called_ = false;
  }

 private:
  struct callable {
    virtual ~callable() = default;
    virtual R call(A... arguments) = 0;
  };
  template <class F>
  struct held final : callable {
    template <class G>
    explicit held(G&& from) : function(std::forward<G>(from)) {}
    R call(A... arguments) override {
      if constexpr (std::is_void_v<R>) {
        std::invoke(function, std::forward<A>(arguments)...);
      } else {
        return std::invoke(function, std::forward<A>(arguments)...);
      }
    }
    F function;
  };

  promise<R>& checked() const {
    if (!function_) detail::throw_future_error(std::future_errc::no_state);
    return *promise_;
  }

  std::unique_ptr<callable> function_;
  std::unique_ptr<promise<R>> promise_;
  bool called_ = false;
};

}  // namespace ulexite
