#pragma once

// The waits of sync/ for coroutines. Each is named as the function that blocks, with co_ before it, and the object is
// its first argument. What its description leaves out is as described there.

#include <ulexite/coroutine/case_operation.hpp>
#include <ulexite/coroutine/task.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/auto_reset_event.hpp>
#include <ulexite/sync/barrier.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/future.hpp>
#include <ulexite/sync/latch.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/wait_group.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <type_traits>
#include <utility>

namespace ulexite {
namespace detail {

class wait_group_case final : public queue_case {
 public:
  explicit wait_group_case(wait_group& of) noexcept : queue_case(of.guard_, of.queue_), of_(of) {}
  [[nodiscard]] bool attempt(agent*&) override { return of_.zero_or_marked(); }

 private:
  wait_group& of_;
};

class task_group_case final : public queue_case {
 public:
  explicit task_group_case(task_group& of) noexcept : queue_case(of.lock_, of.queue_), of_(of) {}
  [[nodiscard]] bool attempt(agent*&) override { return of_.size_ == 0; }

 private:
  task_group& of_;
};

class barrier_case final : public queue_case {
 public:
  barrier_case(barrier_core& at, barrier_core::arrival& arrival)
      : queue_case(at.guard_, at.queue_), at_(at), arrival_(arrival) {
    at.check(arrival);
  }
  [[nodiscard]] bool attempt(agent*&) override { return at_.phase_ != arrival_.phase_; }
  void spend() noexcept { arrival_.at_ = nullptr; }

 private:
  barrier_core& at_;
  barrier_core::arrival& arrival_;
};

struct coroutine_access {
  static ulexite::event& opened(const latch& of) noexcept { return of.open_; }
  static void end_wait(task_group& of) { of.throw_failure(of.take_failure(true)); }
  static void cancel_and_wait(task_group& of) { of.cancel_and_wait(); }
  static void interrupt_body_on_failure(task_group& of) { of.interrupt_body_on_failure(); }
  [[noreturn]] static void leave_body(task_group& of) { of.leave_body(); }
  template <class Done>
  static barrier_core& core(const barrier<Done>& of) noexcept {
    return of.core_;
  }
};

using event_wait = plain_case<event_case, no_handler>;
using acquire_wait = plain_case<acquire_case, no_handler>;
using join_wait = plain_case<join_case, no_handler>;

// Operation is that of a Case, whose constructor takes `of`.
template <class Operation, class Case, class Object>
auto wait_at(wait_kind kind, const void* reported, Object& of, std::int64_t until, cancellable how) {
  return Operation(
      waiting_for(kind, reported, how),
      [&] {
        if constexpr (std::is_constructible_v<Case, Object&, no_handler>) {
          return Case(of, no_handler());
        } else {
          return Case(of);
        }
      },
      until);
}
// Results in R: void, or whether it came in time.
template <class R, class Case>
auto wait_as(wait_kind kind, const void* reported, auto& of, std::int64_t until = no_deadline,
             cancellable how = cancellable::yes) {
  using operation = std::conditional_t<std::is_void_v<R>, void_operation<Case>, plain_operation<Case>>;
  return wait_at<operation, Case>(kind, reported, of, until, how);
}

template <class T>
class join_operation final : public case_operation<join_wait> {
 public:
  explicit join_operation(join_handle<T>& of) : join_operation(handle_access::task_of(of, "get"), of) {}
  T result() {
    static_cast<void>(done());
    return of_.get();
  }

 private:
  join_operation(task& joined, join_handle<T>& of)
      : case_operation<join_wait>(waiting_for(wait_kind::join, &joined, cancellable::no),
                                  [&] { return join_wait(joined, no_handler()); }),
        of_(of) {}
  join_handle<T>& of_;
};

// A wait for a future that may end without it.
class future_operation final : public case_operation<event_wait> {
 public:
  using case_operation::case_operation;
  std::future_status result() { return done() ? std::future_status::ready : std::future_status::timeout; }
};

class barrier_operation final : public case_operation<barrier_case> {
 public:
  barrier_operation(barrier_core& at, barrier_core::arrival&& arrival)
      : case_operation<barrier_case>(waiting_for(wait_kind::barrier, &at, cancellable::yes),
                                     [&] { return barrier_case(at, arrival); }) {}
  void result() {
    static_cast<void>(done());
    case_.spend();
  }
};

template <class Handle>
auto get_of_own(Handle of) -> ulexite::task<decltype(of.get())>;

// A time that has passed is a yield, as in sleep_until.
class sleep_operation final : public stackless_wait {
 public:
  explicit sleep_operation(std::int64_t until) noexcept
      : stackless_wait(waiting_for(wait_kind::sleep, nullptr, cancellable::yes)), until_(until) {}
  [[nodiscard]] bool ready(agent& self) {
    throw_if_stopped(self);
    passed_ = until_ <= now_ns();
    if (passed_ && self.waits_forbidden) return true;
    if (passed_) {
      begin_yield();
      return false;
    }
    check_may_wait(self, wait_kind::sleep);
    provide_timer();
    self.word.prepare();
    begin(self, nullptr, until_);
    return false;
  }
  void block() { sleep_until(until_); }
  void result() const {
    if (cancelled_) throw_cancelled();
  }

 private:
  [[nodiscard]] bool resumed(agent& self) noexcept override {
    if (!passed_) cancelled_ = end(self) == wake_reason::cancelled;
    return true;
  }

  const std::int64_t until_;
  bool passed_ = false;
  bool cancelled_ = false;
};

class yield_operation final : public stackless_wait {
 public:
  yield_operation() noexcept : stackless_wait(waiting_for(wait_kind::none, nullptr, cancellable::no)) {}
  [[nodiscard]] bool ready(agent& self) noexcept {
    if (self.waits_forbidden) return true;
    begin_yield();
    return false;
  }
  void block() { this_fiber::yield(); }
  void result() const noexcept {}

 private:
  [[nodiscard]] bool resumed(agent&) noexcept override { return true; }
};

// The wait for an object, at most until a time. Results in R, as wait_as.
template <class R>
auto wait_on(ulexite::event& of, std::int64_t until = no_deadline) {
  return wait_as<R, event_wait>(wait_kind::event, &of, of, until);
}
template <class R>
auto wait_on(auto_reset_event& of, std::int64_t until = no_deadline) {
  return wait_as<R, acquire_wait>(wait_kind::auto_reset_event, &of, of, until);
}
template <class R>
auto wait_on(const latch& of, std::int64_t until = no_deadline) {
  return wait_as<R, event_wait>(wait_kind::latch, &of, coroutine_access::opened(of), until);
}
template <class R>
auto wait_on(wait_group& of, std::int64_t until = no_deadline) {
  return wait_as<R, wait_group_case>(wait_kind::wait_group, &of, of, until);
}
template <class R>
ulexite::task<R> wait_on(task_group& of, std::int64_t until = no_deadline) {
  bool ended = false;
  try {
    ended = co_await wait_as<bool, task_group_case>(wait_kind::task_group, &of, of, until);
  } catch (const operation_cancelled&) {
    coroutine_access::cancel_and_wait(of);
    throw;
  }
  if (ended) coroutine_access::end_wait(of);
  if constexpr (!std::is_void_v<R>) co_return ended;
}
template <class R, class T>
auto wait_on(join_handle<T>& of, std::int64_t until) {
  task& joined = handle_access::task_of(of, "wait_for");
  return wait_as<R, join_wait>(wait_kind::join, &joined, joined, until, cancellable::no);
}
template <class R, class T>
auto wait_on(const basic_future<T>& of, std::int64_t until) {
  return wait_at<future_operation, event_wait>(wait_kind::future, &of, future_access::ready(of), until,
                                               cancellable::no);
}

}  // namespace detail

// Waits as event::wait.
[[nodiscard]] inline auto co_wait(event& of) { return detail::wait_on<void>(of); }
// Waits as auto_reset_event::wait.
[[nodiscard]] inline auto co_wait(auto_reset_event& of) { return detail::wait_on<void>(of); }
// Waits as latch::wait.
[[nodiscard]] inline auto co_wait(const latch& of) { return detail::wait_on<void>(of); }
// Counts down, and waits, as latch::arrive_and_wait.
[[nodiscard]] inline auto co_arrive_and_wait(latch& at, std::ptrdiff_t n = 1) {
  at.count_down(n);
  return co_wait(at);
}
// Waits as wait_group::wait.
[[nodiscard]] inline auto co_wait(wait_group& of) { return detail::wait_on<void>(of); }
// Waits for the end of a phase as barrier::wait. If it throws operation_cancelled, the token stays valid.
template <class Done>
[[nodiscard]] auto co_wait(const barrier<Done>& at, typename barrier<Done>::arrival_token&& token) {
  return detail::barrier_operation(detail::coroutine_access::core(at), std::move(token));
}
template <class Done>
task<> co_arrive_and_wait(barrier<Done>& at) {
  auto token = at.arrive();
  co_await co_wait(at, std::move(token));
}
// Waits as task_group::wait. If it is cancelled, it waits for the ends of the children on its stack.
inline task<> co_wait(task_group& of) { return detail::wait_on<void>(of); }

// As scope, for a body(task_group&) that is a coroutine. After a failure it waits for the children on its stack.
template <class F, class Body = std::invoke_result_t<F&, task_group&>, class T = detail::spawned_result_t<Body>>
  requires(!std::is_same_v<T, Body>)
task<T> co_scope(F body) {
  using access = detail::coroutine_access;
  detail::check_may_wait_for_children();
  task_group group;
  access::interrupt_body_on_failure(group);
  detail::coroutine_result<T> result;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await body(group);
    } else {
      result.return_value(co_await body(group));
    }
  } catch (...) {
    access::leave_body(group);
  }
  co_await co_wait(group);
  co_return result.take();
}

// Waits at most for `time`, as wait_for of event, auto_reset_event, latch, wait_group, task_group, join_handle, future
// and shared_future. Results in false, for a future in std::future_status::timeout, if the time passed first.
template <class Object>
  requires requires(Object& of) { detail::wait_on<bool>(of, detail::no_deadline); }
[[nodiscard]] auto co_wait_for(Object& of, relative_timeout time) {
  return detail::wait_on<bool>(of, time.deadline());
}
// As co_wait_for, until `time`.
template <class Object>
  requires requires(Object& of) { detail::wait_on<bool>(of, detail::no_deadline); }
[[nodiscard]] auto co_wait_until(Object& of, absolute_timeout time) {
  return detail::wait_on<bool>(of, time.deadline());
}

// Takes a permit, as counting_semaphore::acquire and its timed forms.
template <std::ptrdiff_t Max>
[[nodiscard]] auto co_acquire(counting_semaphore<Max>& from) {
  return detail::wait_as<void, detail::acquire_wait>(detail::wait_kind::semaphore, &from, from);
}
template <std::ptrdiff_t Max>
[[nodiscard]] auto co_try_acquire_for(counting_semaphore<Max>& from, relative_timeout time) {
  return detail::wait_as<bool, detail::acquire_wait>(detail::wait_kind::semaphore, &from, from, time.deadline());
}
template <std::ptrdiff_t Max>
[[nodiscard]] auto co_try_acquire_until(counting_semaphore<Max>& from, absolute_timeout time) {
  return detail::wait_as<bool, detail::acquire_wait>(detail::wait_kind::semaphore, &from, from, time.deadline());
}

// As join_handle::get and join. Not cancellation points.
template <class T>
[[nodiscard]] auto co_get(join_handle<T>& of) {
  return detail::join_operation<T>(of);
}
template <class T>
task<T> co_get(join_handle<T>&& of) {
  return detail::get_of_own(std::move(of));
}
template <class T>
[[nodiscard]] auto co_join(join_handle<T>& of) {
  detail::task& joined = detail::handle_access::task_of(of, "join");
  return detail::wait_as<void, detail::join_wait>(detail::wait_kind::join, &joined, joined, detail::no_deadline,
                                                  detail::cancellable::no);
}
// As wait() of a future or a shared_future; then its get() does not wait. Not cancellation points.
template <class T>
[[nodiscard]] auto co_wait(const detail::basic_future<T>& of) {
  return detail::wait_as<void, detail::event_wait>(detail::wait_kind::future, &of, detail::future_access::ready(of),
                                                   detail::no_deadline, detail::cancellable::no);
}
// As get() of a future or a shared_future.
template <class Future>
  requires requires(Future& of) { detail::future_access::ready(of); }
auto co_get(Future& of) -> task<decltype(of.get())> {
  co_await co_wait(of);
  co_return of.get();
}
// The same of a future that ends with the expression.
template <class Future>
  requires(!std::is_lvalue_reference_v<Future> && requires(Future& of) { detail::future_access::ready(of); })
auto co_get(Future&& of) -> task<decltype(of.get())> {
  return detail::get_of_own(std::move(of));
}

namespace detail {

// Keeps what it waits for.
template <class Handle>
auto get_of_own(Handle of) -> ulexite::task<decltype(of.get())> {
  co_return co_await co_get(of);
}

}  // namespace detail

// As this_fiber::sleep_for, sleep_until and yield; the keyword co_yield has taken the last name.
[[nodiscard]] inline auto co_sleep_until(absolute_timeout time) { return detail::sleep_operation(time.deadline()); }
[[nodiscard]] inline auto co_sleep_for(relative_timeout time) { return detail::sleep_operation(time.deadline()); }
[[nodiscard]] inline auto co_yield_now() { return detail::yield_operation(); }

}  // namespace ulexite
