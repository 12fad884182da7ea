#pragma once

#include <type_traits>

namespace ulexite::detail {

// The result of a fiber whose closure returns an R. The closure may return a coroutine, which then runs in the fiber
// (coroutine/task.hpp); the fiber's result is the coroutine's.
template <class R>
struct spawned_result {
  using type = R;
};
template <class R>
using spawned_result_t = typename spawned_result<R>::type;
template <class R>
inline constexpr bool is_coroutine = !std::is_same_v<spawned_result_t<R>, R>;
template <class F>
inline constexpr bool makes_coroutine = is_coroutine<std::invoke_result_t<F>>;

}  // namespace ulexite::detail
