#pragma once

#include <ulexite/coroutine/operation.hpp>
#include <ulexite/coroutine/promise.hpp>

#include <ulexite/runtime/spawn.hpp>

#include <coroutine>
#include <memory>
#include <type_traits>
#include <utility>

namespace ulexite {

// A coroutine that returns a T: void, a reference, or what can be moved. It is lazy: it starts when it is awaited, or
// given to co_spawn or spawn. The owner may move it, and destroys it: with the frame of a coroutine that was not
// started go its arguments.
//
// In a fiber that co_spawn or spawn has started with a task, `co_await child()` continues the fiber in the child, and a
// wait by one of the awaitables of <ulexite/coroutine.hpp> gives the fiber's stack up. Every other call that waits
// works in it too, and keeps the stack while it waits. In any other coroutine, in a fiber that calls await(), and on a
// plain thread, the whole task runs where it is awaited, and its waits block the caller. So a task is written once for
// all.
//
// A task runs on one fiber or thread at a time. Over a wait without a stack the rounding mode is not kept. Arguments of
// a coroutine that are references must outlive it, and so must a lambda with captures: give such a lambda to spawn,
// which keeps it, and do not call it yourself.
template <class T = void>
class [[nodiscard]] task {
 public:
  // What the compiler needs of a coroutine.
  struct promise_type : detail::promise_base, detail::coroutine_result<T> {
    static_assert(detail::fits_in_a_frame<detail::coroutine_result<T>>,
                  "the result of a task must not be aligned to more than two pointers");
    // The task of this coroutine.
    task get_return_object() noexcept { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }

    // Called by the compiler for each co_await in the coroutine.
    template <class U>
    auto await_transform(task<U>&& child) noexcept {
      return typename task<U>::awaiter{child.frame_, *this};
    }
    template <detail::coroutine_operation Operation>
    auto await_transform(Operation&& operation) noexcept {
      return detail::operation_awaiter<Operation>{operation, *this};
    }
    template <detail::coroutine_operation Operation>
    void await_transform(Operation& kept) = delete;  // an operation is awaited once, where it is made
    template <class Awaitable>
    auto await_transform(Awaitable&& of_another_library) {
      static_assert(detail::has_awaiter<Awaitable>,
                    "this is no awaitable: write co_get(handle), co_lock(mutex), co_receive(channel) and the like, or "
                    "std::move(task)");
      return detail::foreign_awaiter<Awaitable>(std::forward<Awaitable>(of_another_library), *this);
    }
  };

  // A task without a coroutine, which must not be awaited.
  task() = default;
  task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    const task gone(std::exchange(frame_, std::exchange(other.frame_, nullptr)));
    return *this;
  }
  ~task() {
    if (frame_) frame_.destroy();
  }

  // In a fiber, by await(), and in a coroutine of another library: runs the task to its end. Its waits block the
  // calling fiber or thread.
  auto operator co_await() && noexcept {
    struct blocking {
      std::coroutine_handle<promise_type> frame;
      [[nodiscard]] bool await_ready() const { return detail::run_child(frame, detail::startable(frame)); }
      void await_suspend(std::coroutine_handle<>) const noexcept {}
      T await_resume() const { return frame.promise().take(); }
    };
    return blocking{frame_};
  }

 private:
  template <class>
  friend class task;
  template <class, class>
  friend class detail::closure_task;

  // In another task, or at the bottom of a fiber.
  struct awaiter {
    std::coroutine_handle<promise_type> child;
    detail::promise_base& parent;

    [[nodiscard]] bool await_ready() {
      detail::startable(child).fiber = parent.fiber;
      return false;
    }
    bool await_suspend(std::coroutine_handle<> waiting) noexcept {
      child.promise().parent = waiting;
      return !detail::run_child(child, child.promise());
    }
    T await_resume() { return child.promise().take(); }
  };

  explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

namespace detail {

template <class T>
struct spawned_result<ulexite::task<T>> {
  using type = T;
};

// A task as the closure of a fiber.
template <class T>
struct task_closure {
  ulexite::task<T> made;
  ulexite::task<T> operator()() && noexcept { return std::move(made); }
};

// What a fiber that runs a coroutine keeps: the closure, to whose captures the coroutine may refer, and the coroutine
// that it has made. Of a task_closure only the coroutine is left.
template <class T, class F>
struct coroutine_body {
  F closure;
  ulexite::task<T> made{};
  void make() { made = std::move(closure)(); }
};
template <class T>
struct coroutine_body<T, task_closure<T>> : task_closure<T> {
  void make() const noexcept {}
};

// A fiber that runs a coroutine, and has a stack only while it runs. Each run begins on another stack: the first at the
// coroutine's start, the others where a wait was.
template <class T, class F>
class closure_task<ulexite::task<T>, F> final : public result_task<T> {
 public:
  template <class G>
  explicit closure_task(G&& closure) : result_task<T>(operations_), body_{{std::forward<G>(closure)}} {
    if constexpr (requires { body_.closure.on_made(*this); }) body_.closure.on_made(*this);
  }

 private:
  struct result_of_body {
    coroutine_body<T, F>& body;
    T operator()() { return body.made.frame_.promise().take(); }
    void on_exception(task& failing) noexcept
      requires requires(F& of) { of.on_exception(failing); }
    {
      body.closure.on_exception(failing);
    }
  };

  ~closure_task() {}

  static scheduler* run(task& base) noexcept {
    auto& self = static_cast<closure_task&>(base);
    if (stackless_wait* const wait = self.run_until_it_waits()) {
      leave_stack(self, *wait);
      return this_scheduler();
    }
    result_of_body result{self.body_};
    if (self.body_.made.frame_) self.run_and_keep(result);
    self.begin_completion();
    std::destroy_at(std::addressof(self.body_));
    return self.finish();
  }
  // Null: the coroutine has ended, or there is none. What resumed() does may wait on this stack, and so overwrite the
  // place of the wait.
  stackless_wait* run_until_it_waits() noexcept {
    std::coroutine_handle<> continues;
    if (auto* const over = static_cast<stackless_wait*>(this->saved.frame)) {
      if (!over->resumed(this->agent())) {
        this->wait_stackless(*over);
        return over;
      }
      continues = over->continues;
    } else if (!start()) {
      return nullptr;
    } else {
      continues = body_.made.frame_;
    }
    continues.resume();
    return body_.made.frame_.done() ? nullptr : static_cast<stackless_wait*>(this->saved.frame);
  }
  // False: the closure has made no coroutine.
  bool start() noexcept {
    try {
      body_.make();
      startable(body_.made.frame_).fiber = this;
      return true;
    } catch (...) {
      body_.made = {};
      if constexpr (requires { body_.closure.on_exception(*this); }) body_.closure.on_exception(*this);
      this->keep_failure();
      return false;
    }
  }
  static void abandon(task& base) noexcept { std::destroy_at(std::addressof(static_cast<closure_task&>(base).body_)); }
  static void drop(task& base) noexcept { static_cast<closure_task&>(base).drop_value(); }

  static constexpr task::operations operations_{run, abandon, closure_task::drops_nothing ? nullptr : drop};

  union {
    coroutine_body<T, F> body_;
  };
};

}  // namespace detail

// Starts `body` in a fiber of the calling fiber's runtime, and returns its join_handle, as spawn. The fiber keeps a
// stack only while it runs. Never waits. Throws as spawn, and usage_error from the handle for a task without a
// coroutine.
template <class T>
join_handle<T> co_spawn(task<T> body, std::source_location where = std::source_location::current()) {
  return spawn(detail::task_closure<T>{std::move(body)}, where);
}
// As above, with a name, a size of the stack that it has while it runs, and the place of the call.
template <class T>
join_handle<T> co_spawn(const fiber_options& options, task<T> body) {
  return spawn(options, detail::task_closure<T>{std::move(body)});
}
// As above, from any thread, in a runtime, a group or another object with a function spawn().
template <class Spawner, class T>
auto co_spawn(Spawner& in, task<T> body, std::source_location where = std::source_location::current())
  requires requires { in.spawn(detail::task_closure<T>{std::move(body)}, where); }
{
  return in.spawn(detail::task_closure<T>{std::move(body)}, where);
}

}  // namespace ulexite
