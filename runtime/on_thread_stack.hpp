#pragma once

#include <ulexite/base/kernel.hpp>
#include <ulexite/runtime/no_suspend.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ulexite {

namespace detail {
template <class T>
using result_place_of =
    std::conditional_t<std::is_void_v<T>, std::monostate,
                       std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, std::remove_cv_t<T>>>;

void call_on_thread_stack(void (*function)(void*), void* data) noexcept;
[[nodiscard]] bool can_leave_for_thread_stack() noexcept;
}  // namespace detail

// Calls `function` on the stack of the worker's thread. Returns its result or throws its exception. Use it for deep
// recursion, because a thread's stack has 8 MiB, or the size of ulimit -s. Use it also for libraries that check the
// bounds of their stack. The fiber does not leave its worker during the call, so the function must not wait:
// no_suspend_scope holds in it. It sees the floating-point modes of the thread, and no exception that the fiber
// handles; its errno stays. An ordinary call on a plain thread, in a job and under a no_suspend_scope. Not a
// cancellation point.
template <class F>
  requires std::is_invocable_v<F>
std::invoke_result_t<F> on_thread_stack(F&& function) {
  using result = std::invoke_result_t<F>;
  if (!detail::can_leave_for_thread_stack()) return std::invoke(std::forward<F>(function));
  const no_suspend_scope stays("on_thread_stack");
  struct call {
    F& function;
    int error = 0;
    std::exception_ptr failure{};
    std::optional<detail::result_place_of<result>> value{};
  } there{function};
  detail::call_on_thread_stack(
      [](void* data) {
        call& here = *static_cast<call*>(data);
        try {
          if constexpr (std::is_void_v<result>) {
            std::invoke(std::forward<F>(here.function));
          } else if constexpr (std::is_reference_v<result>) {
            here.value.emplace(std::addressof(std::invoke(std::forward<F>(here.function))));
          } else {
            here.value.emplace(std::invoke(std::forward<F>(here.function)));
          }
        } catch (...) {
          here.failure = std::current_exception();
        }
        here.error = detail::last_errno();  // the switch back gives the fiber its own
      },
      &there);
  detail::set_last_errno(there.error);
  if (there.failure) std::rethrow_exception(there.failure);
  if constexpr (std::is_reference_v<result>) {
    return static_cast<result>(**there.value);
  } else if constexpr (!std::is_void_v<result>) {
    return std::move(*there.value);
  }
}

}  // namespace ulexite
