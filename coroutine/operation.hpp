#pragma once

// What a coroutine can await. An operation is one of this library's waits. Anything else is an awaitable of another
// library, which completes on any thread.

#include <ulexite/coroutine/promise.hpp>
#include <ulexite/coroutine/resumption.hpp>
#include <ulexite/runtime/wait/stackless_wait.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace ulexite::detail {

// Whether values of these types may be in a coroutine's frame, which operator new aligns to two pointers.
template <class... T>
inline constexpr bool fits_in_a_frame = ((alignof(T) <= 2 * sizeof(void*)) && ...);

// An operation has three more members:
//   bool ready(agent& self)   does it if no wait is needed. False: the fiber must give its stack up, because the wait
//                             has begun, or because others should run.
//   void block()              does it as the member function of its name, which blocks the caller.
//   auto result()             the result, or an exception, once it is done.
template <class T>
concept coroutine_operation = std::derived_from<T, stackless_wait>;

// Of a task's coroutine. It is copied (by g++ 12), so it refers to the operation.
template <class Operation>
struct operation_awaiter {
  Operation& of;
  promise_base& in;

  [[nodiscard]] bool await_ready() {
    if (in.fiber) return of.ready(in.fiber->agent());
    of.block();
    return true;
  }
  void await_suspend(std::coroutine_handle<> waiting) noexcept {
    of.continues = waiting;
    in.fiber->wait_stackless(of);
  }
  decltype(auto) await_resume() { return of.result(); }
};

// In a coroutine of another library an operation blocks the calling fiber or thread.
template <class Operation>
struct blocking_awaiter {
  Operation& of;
  [[nodiscard]] bool await_ready() {
    of.block();
    return true;
  }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  decltype(auto) await_resume() { return of.result(); }
};
template <coroutine_operation Operation>
auto operator co_await(Operation&& of) noexcept {
  return blocking_awaiter<Operation>{of};
}
template <coroutine_operation Operation>
void operator co_await(Operation& kept) = delete;

// An awaitable of another library, in a task's coroutine. Whichever thread completes it, the fiber continues on a
// worker of its runtime.
//
// State
//   stage_   starting -> waiting, by the fiber once its word is prepared, or -> complete, by the thread that completes
//            the operation.
// Pairings
//   A  both exchange stage_, acq_rel: the second sees the first one's writes.
template <class Awaitable>
class foreign_awaiter final : stackless_wait, resumption {
  enum class stage : int { starting, waiting, complete };

 public:
  foreign_awaiter(Awaitable&& of, promise_base& in)
      : stackless_wait(waiting_for(wait_kind::none, nullptr, cancellable::no)),
        inner_(awaiter_of(std::forward<Awaitable>(of))),
        in_(in) {}

  [[nodiscard]] bool await_ready() {
    if (inner_.await_ready()) return true;
    check_may_wait(this_agent(), wait_kind::none);
    if (in_.fiber) return false;
    block_for(inner_);
    return true;
  }
  bool await_suspend(std::coroutine_handle<> waiting) {
    if (!start_operation(inner_, handle())) return false;
    agent& self = in_.fiber->agent();
    continues = waiting;
    self.word.prepare();
    if (stage_.exchange(stage::waiting, std::memory_order_acq_rel) == stage::complete && self.word.retract())  // A
      return false;
    begin(self, nullptr, no_deadline);
    in_.fiber->wait_stackless(*this);
    return true;
  }
  decltype(auto) await_resume() { return inner_.await_resume(); }

 private:
  [[nodiscard]] bool resumed(agent&) noexcept override { return true; }

  // If the fiber has not prepared its wait yet, it finds the operation complete.
  void fire() noexcept override {
    agent& waiter = in_.fiber->agent();
    if (stage_.exchange(stage::complete, std::memory_order_acq_rel) != stage::waiting) return;  // A
    if (waiter.word.claim(wake_reason::notified) == claim_result::won) resume(waiter);
  }

  awaiter_type<Awaitable> inner_;
  promise_base& in_;
  std::atomic<stage> stage_{stage::starting};
};

}  // namespace ulexite::detail
