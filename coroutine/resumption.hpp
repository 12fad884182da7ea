#pragma once

// How a fiber waits for an awaitable of another library.

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>

#include <coroutine>
#include <cstddef>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace ulexite::detail {

// The awaiter of an awaitable, as the language finds it.
template <class Awaitable>
decltype(auto) awaiter_of(Awaitable&& of) {
  if constexpr (requires { std::forward<Awaitable>(of).operator co_await(); }) {
    return std::forward<Awaitable>(of).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<Awaitable>(of)); }) {
    return operator co_await(std::forward<Awaitable>(of));
  } else {
    return std::forward<Awaitable>(of);
  }
}
template <class Awaitable>
using awaiter_type = decltype(awaiter_of(std::declval<Awaitable>()));
template <class Awaitable>
concept has_awaiter = requires(std::remove_reference_t<awaiter_type<Awaitable>>& awaiter) { awaiter.await_ready(); };

// A coroutine that stands for a waiter: when it is resumed, it calls fire(), once. Its frame is in this object if it
// fits. A frame made by hand of two function pointers would be smaller, but clang calls a frame's functions by a
// convention of its own, so that would be undefined.
class resumption {
 public:
  resumption() = default;
  resumption(const resumption&) = delete;
  resumption& operator=(const resumption&) = delete;

  // Throws std::bad_alloc if the frame does not fit and there is no memory.
  [[nodiscard]] std::coroutine_handle<> handle() {
    frame_ = body(*this).frame;
    return frame_;
  }

 protected:
  ~resumption() {
    if (frame_) frame_.destroy();
  }
  // May end the life of this object.
  virtual void fire() noexcept = 0;

 private:
  struct coroutine {
    struct promise_type {
      resumption& of;
      explicit promise_type(resumption& whose) noexcept : of(whose) {}
      static void* operator new(std::size_t size, resumption& whose) {
        return size <= sizeof whose.room_ ? static_cast<void*>(whose.room_) : ::operator new(size);
      }
      static void operator delete(void* frame, std::size_t size) noexcept {
        if (size > sizeof room_) ::operator delete(frame);
      }
      coroutine get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
      [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
      // It fires when it is suspended for the last time, because its frame may be destroyed in the call.
      [[nodiscard]] auto final_suspend() const noexcept {
        struct last {
          [[nodiscard]] bool await_ready() const noexcept { return false; }
          void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept { ended.promise().of.fire(); }
          void await_resume() const noexcept {}
        };
        return last{};
      }
      void return_void() noexcept {}
      void unhandled_exception() noexcept {}
    };
    std::coroutine_handle<promise_type> frame;
  };
  static coroutine body(resumption&) { co_return; }

  std::coroutine_handle<> frame_;
  alignas(16) std::byte room_[96];
};

// Starts the operation of an awaiter that is not ready. False: it is complete already.
template <class Awaiter>
bool start_operation(Awaiter& awaiter, std::coroutine_handle<> then) {
  using returned = decltype(awaiter.await_suspend(then));
  if constexpr (std::is_void_v<returned>) {
    awaiter.await_suspend(then);
    return true;
  } else if constexpr (std::is_same_v<returned, bool>) {
    return awaiter.await_suspend(then);
  } else {
    const std::coroutine_handle<> next = awaiter.await_suspend(then);
    if (next == then) return false;
    next.resume();
    return true;
  }
}

struct resumed_event final : resumption {
  void fire() noexcept override { done.set(); }
  ulexite::event done;
};

// Blocks the calling fiber or thread until the operation is complete. Not a cancellation point, because the operation
// may refer to the caller's frame.
template <class Awaiter>
void block_for(Awaiter& awaiter) {
  check_may_wait(this_agent(), wait_kind::event);  // before the operation refers to this frame
  resumed_event here;
  if (!start_operation(awaiter, here.handle())) return;
  const shield until_complete;
  here.done.wait();
}

// The same for an operation that `stop` can stop. A stop or a deadline of the caller requests that. Returns whether it
// has.
template <class Awaiter>
bool block_for(Awaiter& awaiter, std::stop_source& stop) {
  check_may_wait(this_agent(), wait_kind::event);
  resumed_event here;
  if (!start_operation(awaiter, here.handle())) return false;
  try {
    here.done.wait();
    return false;
  } catch (const operation_cancelled&) {
  }
  run_stop_callbacks(stop);
  const shield until_complete;
  here.done.wait();
  return true;
}

}  // namespace ulexite::detail
