#pragma once

// A task with its closure and its result, and how a fiber is made of a function.
//
// A closure may have two more functions: on_made(task&) noexcept is called when it is in its final place, before the
// task is published, and on_exception(task&) noexcept in the catch block of an exception from the closure or from the
// move of its result.

#include <ulexite/runtime/task/spawned_result.hpp>
#include <ulexite/runtime/task/task.hpp>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ulexite::detail {

// The place of a result until it is taken: in the task, or beside it if it is large.
template <class T>
class large_result {
 public:
  template <class U>
  void emplace(U&& value) {
    value_ = std::make_unique<T>(std::forward<U>(value));
  }
  T& operator*() noexcept { return *value_; }
  T* operator->() noexcept { return value_.get(); }
  void reset() noexcept { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};
template <class T>
using result_place = std::conditional_t<(sizeof(T) > 128 || alignof(T) > 16), large_result<T>, std::optional<T>>;

// Whether a result can be passed from one fiber to another.
template <class R>
inline constexpr bool transferable_result =
    std::is_void_v<R> || std::is_lvalue_reference_v<R> || (std::is_object_v<R> && std::is_move_constructible_v<R>);

// Calls a function for its effect. A coroutine would only be made here, and dropped before it runs.
template <class F, class... A>
void call_function(F&& function, A&&... arguments) {
  static_assert(!is_coroutine<std::invoke_result_t<F, A...>>,
                "a coroutine would not run here: pass a function, or give the coroutine to spawn");
  static_cast<void>(std::invoke(std::forward<F>(function), std::forward<A>(arguments)...));
}

// A task with a closure that returns an R.
template <class R>
class result_task : public task {
  static_assert(transferable_result<R>,
                "the result of a fiber must be void, a reference T& or movable, because its handle gives it away");

 public:
  using value_type = std::conditional_t<
      std::is_void_v<R>, std::monostate,
      std::conditional_t<std::is_reference_v<R>, std::reference_wrapper<std::remove_reference_t<R>>, R>>;
  using task::task;

  // Takes the result, or rethrows. After the end, once.
  R take() {
    rethrow_failure();
    if constexpr (std::is_void_v<R>) {
      return;
    } else if constexpr (std::is_reference_v<R>) {
      return static_cast<R>(value_->get());
    } else {
      R value = std::move(*value_);
      value_.reset();
      return value;
    }
  }

 protected:
  ~result_task() = default;

  static constexpr bool drops_nothing = std::is_void_v<R> || std::is_trivially_destructible_v<result_place<value_type>>;
  void drop_value() noexcept { value_.reset(); }

  template <class F>
  void run_and_keep(F& closure) noexcept {
    try {
      if constexpr (std::is_void_v<R>) {
        std::move(closure)();
      } else {
        value_.emplace(std::move(closure)());
      }
    } catch (...) {
      if constexpr (requires { closure.on_exception(*this); }) closure.on_exception(*this);
      keep_failure();
    }
  }

 private:
  struct nothing {
    void reset() noexcept {}
  };
  [[no_unique_address]] std::conditional_t<std::is_void_v<R>, nothing, result_place<value_type>> value_;
};

// Places the closure in the task's own block; large ones beside it.
//
// For a closure that returns a coroutine there is a specialisation in coroutine/task.hpp.
template <class R, class F>
class closure_task final : public result_task<R> {
 public:
  template <class G>
  explicit closure_task(G&& closure) : result_task<R>(operations_), closure_(std::forward<G>(closure)) {
    if constexpr (requires { closure_.on_made(*this); }) closure_.on_made(*this);
  }

 private:
  ~closure_task() {}

  static scheduler* run(task& base) noexcept {
    auto& self = static_cast<closure_task&>(base);
    self.run_and_keep(self.closure_);
    if constexpr (!std::is_trivially_destructible_v<F>) self.begin_completion();
    self.closure_.~F();
    return self.finish();
  }
  static void abandon(task& base) noexcept { static_cast<closure_task&>(base).closure_.~F(); }
  static void drop(task& base) noexcept { static_cast<closure_task&>(base).drop_value(); }

  static constexpr task::operations operations_{run, abandon, closure_task::drops_nothing ? nullptr : drop};

  union {
    F closure_;
  };
};

// A closure that others wait for (task::set_must_begin).
template <class F>
struct awaited_call {
  F function;
  decltype(auto) operator()() { return std::move(function)(); }
  void on_made(task& made) noexcept { made.set_must_begin(); }
};
template <class F>
awaited_call(F) -> awaited_call<F>;

template <class F>
struct boxed_closure {
  std::unique_ptr<F> closure;
  decltype(auto) operator()() { return std::move(*closure)(); }
  void on_made(task& made) noexcept
    requires requires(F& of) { of.on_made(made); }
  {
    closure->on_made(made);
  }
  void on_exception(task& failing) noexcept
    requires requires(F& of) { of.on_exception(failing); }
  {
    closure->on_exception(failing);
  }
};

// Makes a task in `rt` that calls `closure`; the caller publishes it. Throws as allocate_task, and exceptions of the
// closure's move. Runtime is runtime_state or callers_runtime.
template <class Runtime, class F>
auto& make_task(Runtime&& rt, F&& closure) {
  using closure_type = std::remove_cvref_t<F>;
  using made_type = closure_task<std::invoke_result_t<closure_type>, closure_type>;
  if constexpr (sizeof(made_type) > 496 || alignof(made_type) > 16) {
    return make_task(rt, boxed_closure<closure_type>{std::make_unique<closure_type>(std::forward<F>(closure))});
  } else {
    void* const room = allocate_task(rt, task_pool::class_of(sizeof(made_type)));
    try {
      auto& made = *new (room) made_type(std::forward<F>(closure));
      made.agent().in_use = true;  // set last: the closure's constructor may wait, and be abandoned
      return made;
    } catch (...) {
      deallocate_task(room);
      throw;
    }
  }
}

// Makes a fiber in `rt` that calls `closure`, and makes it runnable. Runtime is as above.
template <class Runtime, class F>
auto& spawn_task(Runtime&& rt, const task_options& options, F&& closure) {
  auto& made = make_task(rt, std::forward<F>(closure));
  if (options.must_be_applied()) apply_options(made, options);
  made.where = options.where;
  publish(rt, made);
  return static_cast<result_task<spawned_result_t<std::invoke_result_t<std::remove_cvref_t<F>>>>&>(made);
}

}  // namespace ulexite::detail
