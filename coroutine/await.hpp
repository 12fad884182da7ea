#pragma once

// Between coroutines of other libraries and fibers.

#include <ulexite/coroutine/resumption.hpp>
#include <ulexite/coroutine/task.hpp>
#include <ulexite/coroutine/waits.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/sync/blocking.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

namespace ulexite {

// Waits in a fiber, or a plain thread, for an awaitable of any library, or for a task; results in its result, or throws
// its exception. The operation starts on the caller. Whichever thread completes it, a fiber continues on a worker. Not
// a cancellation point, because the operation may refer to the caller's frame; a task's own waits are. Allocates
// nothing for the wait.
template <class Awaitable>
decltype(auto) await(Awaitable&& of) {
  static_assert(
      detail::has_awaiter<Awaitable>,
      "await takes a task, by std::move, or an awaitable of another library; for the rest call get(), lock(), "
      "receive() and the like");
  auto&& awaiter = detail::awaiter_of(std::forward<Awaitable>(of));
  if (!awaiter.await_ready()) detail::block_for(awaiter);
  return awaiter.await_resume();
}

// The same for an operation that can be stopped: start(std::stop_token) returns the awaitable. A stop or a deadline of
// the fiber requests the token's stop, and then the operation's end is waited for. Its result is returned all the same,
// because it was done. An exception after such a request is thrown as operation_cancelled or deadline_exceeded.
template <std::invocable<std::stop_token> F>
decltype(auto) await(F&& start) {
  std::stop_source stop;
  std::stop_token token = stop.get_token();  // named, because g++ 14 takes the awaitable for a reference to a temporary
  auto&& of = std::invoke(std::forward<F>(start), std::move(token));
  auto&& awaiter = detail::awaiter_of(std::forward<decltype(of)>(of));
  const bool asked = !awaiter.await_ready() && detail::block_for(awaiter, stop);
  try {
    return awaiter.await_resume();
  } catch (...) {
    if (asked) detail::throw_if_stopped();
    throw;
  }
}

namespace detail {

// Resumes a coroutine of another library on the fiber that has called its function. Returns when the coroutine waits
// again or has ended.
struct resume_inline {
  void operator()(std::coroutine_handle<> waiting) const { waiting.resume(); }
};

template <class F, class Resume>
class [[nodiscard]] fiber_call {
  using R = std::invoke_result_t<F>;
  static_assert(!is_coroutine<R>, "on_fiber calls a function: start a task by co_spawn");

 public:
  fiber_call(runtime& in, F&& function, Resume&& how)
      : in_(in), function_(std::move(function)), resume_(std::move(how)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  // The coroutine, and with it this object, may be gone before resume_ has returned.
  void await_suspend(std::coroutine_handle<> waiting) {
    in_.spawn(awaited_call{[this, waiting] {
         try {
           if constexpr (std::is_void_v<R>) {
             std::move(function_)();
             outcome_.return_void();
           } else {
             outcome_.return_value(std::move(function_)());
           }
         } catch (...) {
           outcome_.unhandled_exception();
         }
         Resume how = std::move(resume_);
         how(waiting);
       }})
        .detach();
  }
  R await_resume() { return outcome_.take(); }

 private:
  runtime& in_;
  F function_;
  Resume resume_;
  coroutine_result<R> outcome_;
};

}  // namespace detail

// For coroutines of other libraries: `co_await on_fiber(rt, f)` calls f in a new fiber of `in`, where it may block, and
// results in its result or its exception. Then resume_by(handle) is called on that fiber: it resumes the coroutine
// there or, for example, posts it to the executor that it belongs to. Throws as runtime::spawn.
template <class F, class Resume = detail::resume_inline>
[[nodiscard]] auto on_fiber(runtime& in, F function, Resume resume_by = {}) {
  return detail::fiber_call<F, Resume>(in, std::move(function), std::move(resume_by));
}

namespace detail {

// Meanwhile the caller's deadline ends no wait; a request to stop does.
class deadline_pause {
 public:
  deadline_pause() noexcept : self_(this_agent()), deadline_(std::exchange(self_.deadline, no_deadline)) {}
  deadline_pause(const deadline_pause&) = delete;
  deadline_pause& operator=(const deadline_pause&) = delete;
  ~deadline_pause() { self_.deadline = deadline_; }

 private:
  agent& self_;
  const std::int64_t deadline_;
};

}  // namespace detail

// For tasks: calls f in a child fiber, where it may block, and results in its result or its exception. Meanwhile
// the task has no stack. It is the way without the stack for each call that waits and has no awaitable. The child
// has the deadline and the shield of the task, and gets its request to stop. What f does about these is the result,
// because the task always waits for the child's end. A cancellation point before the child starts. Throws as spawn.
// Awaited on a plain thread, it is an ordinary call.
template <std::invocable F, class R = std::invoke_result_t<F>>
task<R> on_fiber(F function, std::source_location where = std::source_location::current()) {
  static_assert(!detail::is_coroutine<R>, "on_fiber calls a function: await a task itself");
  detail::check_may_wait(detail::this_agent(), detail::wait_kind::join);
  detail::throw_if_stopped();
  if (!detail::this_task()) co_return std::move(function)();
  const auto call = [&, shielded = detail::this_agent().shielded]() -> R {
    detail::this_agent().shielded = shielded;  // a class shield would hide the deadline, which it has inherited
    return std::move(function)();
  };
  join_handle<R> child = spawn(call, where);
  detail::task& joined = detail::handle_access::task_of(child, "join");
  {
    const detail::deadline_pause until_the_child_ends;  // which has the deadline
    try {
      co_await detail::wait_as<void, detail::join_wait>(detail::wait_kind::join, &joined, joined);
    } catch (const operation_cancelled&) {
      child.request_stop();
    }
  }
  co_return co_await co_get(child);
}

// Calls `function` on a thread that may block, as blocking. So files and directories are used without a stack.
template <std::invocable F, class R = std::invoke_result_t<F&>>
task<R> co_blocking(F function) {
  static_assert(!detail::is_coroutine<R>, "co_blocking calls a function: await a task itself");
  detail::blocking_function<F> call(function);
  const auto end = [&](detail::cancellable how) {
    return detail::wait_as<void, detail::event_wait>(detail::wait_kind::blocking, &call.ended(), call.ended(),
                                                     detail::no_deadline, how);
  };
  if (call.begin()) {
    std::exception_ptr ended_early;
    try {
      co_await end(detail::cancellable::yes);
    } catch (...) {
      ended_early = std::current_exception();
    }
    if (ended_early) {
      if (call.withdraw()) std::rethrow_exception(ended_early);
      co_await end(detail::cancellable::no);
    }
  }
  co_return call.take();
}

}  // namespace ulexite
