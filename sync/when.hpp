#pragma once

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/task_group.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ulexite {
namespace detail {

// A result as it stands in a tuple.
template <class R>
using kept = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

// A result as it stands in a variant or vector, which hold no references.
template <class R>
using stored = std::conditional_t<std::is_reference_v<R>, std::reference_wrapper<std::remove_reference_t<R>>, kept<R>>;

// The value of call(), or std::monostate.
template <class Call>
kept<std::invoke_result_t<Call>> keep(Call&& call) {
  if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
    std::forward<Call>(call)();
    return {};
  } else {
    return std::forward<Call>(call)();
  }
}

template <class>
inline constexpr bool is_join_handle = false;
template <class T>
inline constexpr bool is_join_handle<join_handle<T>> = true;

template <class R>
concept handle_range = std::ranges::contiguous_range<R> && is_join_handle<std::ranges::range_value_t<R>>;

}  // namespace detail

// Calls all functions, each in a fiber of its own, and waits for them; returns the tuple of their results, with
// std::monostate for void. The first failure cancels the others and is thrown once all have ended. A cancellation point
// like task_group::wait. Throws like spawn.
template <std::invocable... F>
auto when_all(F&&... functions) {
  task_group group;
  std::tuple handles{group.spawn([&functions]() -> decltype(auto) { return std::forward<F>(functions)(); })...};
  group.wait();
  return std::apply(
      [](auto&... handle) {
        return std::tuple<detail::kept<std::invoke_result_t<F>>...>{
            detail::keep([&]() -> decltype(auto) { return handle.get(); })...};
      },
      handles);
}

namespace detail {

struct pending_join final : join_case {
  pending_join(task& of, std::size_t position) noexcept : join_case(of), fiber(of), index(position) {}
  task& fiber;
  std::size_t index;  // of the function that ended first
  bool taken = false;
};

}  // namespace detail

// Waits for the fibers of all handles, whichever ends first, and returns the vector of their results in the order of
// the handles (std::monostate for void, std::reference_wrapper for a reference); the handles are empty then. When one
// has failed, the others are asked to stop, and its exception is thrown once all have ended. A cancellation point: when
// the caller is asked to stop, so are they. Throws usage_error for a handle without a fiber, or if another waits for
// one of the fibers.
template <detail::handle_range Handles>
auto when_all(Handles&& handles) {
  using result = decltype(std::ranges::begin(handles)->get());
  std::deque<detail::pending_join> cases;
  std::vector<detail::select_case*> pending;
  for (auto& handle : handles)
    pending.push_back(&cases.emplace_back(detail::handle_access::task_of(handle, "when_all"), cases.size()));
  auto by_source = pending;
  std::exception_ptr failure;
  std::vector<std::optional<detail::stored<result>>> results(cases.size());
  std::optional<shield> uninterrupted;
  const auto fail = [&] {
    if (failure) return;
    failure = std::current_exception();
    for (auto& handle : handles) handle.request_stop();
    uninterrupted.emplace();
  };
  const auto taken = [](detail::select_case* each) { return static_cast<detail::pending_join*>(each)->taken; };
  while (!pending.empty()) {
    try {
      (void)detail::choose(pending, by_source, true, true);
    } catch (const operation_cancelled&) {
      fail();
    }
    for (auto& each : cases) {  // all that have ended: each wait costs as much as this
      if (each.taken || !each.fiber.done()) continue;
      each.taken = true;
      auto& handle = std::ranges::begin(handles)[static_cast<std::ptrdiff_t>(each.index)];
      try {
        results[each.index].emplace(detail::keep([&]() -> decltype(auto) { return handle.get(); }));
      } catch (...) {
        fail();
      }
    }
    std::erase_if(pending, taken);
    std::erase_if(by_source, taken);
  }
  if (failure) std::rethrow_exception(failure);
  std::vector<detail::stored<result>> values;
  values.reserve(results.size());
  for (auto& each : results) values.push_back(std::move(*each));
  return values;
}

// The result of when_any: the position of the function that ended first, and its result in the alternative of that
// position (std::monostate for void, std::reference_wrapper for a reference).
template <class... R>
struct any_result {
  std::size_t index;                         // of the function that ended first
  std::variant<detail::stored<R>...> value;  // its result
};

// Calls all functions, each in a fiber of its own. The first to end decides: the others are cancelled and waited for,
// their results and exceptions are dropped, and its result is returned or its exception thrown. A cancellation point
// like task_group::wait. Throws like spawn.
template <std::invocable... F>
  requires(sizeof...(F) > 0)
auto when_any(F&&... functions) {
  static_assert((detail::deliverable<std::invoke_result_t<F>> && ...),
                "each result of when_any must be void, a reference T& or movable");
  using result = any_result<std::invoke_result_t<F>...>;
  std::optional<result> first;
  std::exception_ptr failure;
  std::atomic<bool> decided{false};
  const auto run = [&]<std::size_t I>(task_group& group, std::integral_constant<std::size_t, I>, auto&& function) {
    bool won = false;
    const auto win = [&] {
      won = !decided.exchange(true, std::memory_order_relaxed);  // published by group.wait()
      return won;
    };
    try {
      decltype(auto) value = detail::keep(std::forward<decltype(function)>(function));
      if (!win()) return;
      first.emplace(result{I, decltype(result::value)(std::in_place_index<I>, std::forward<decltype(value)>(value))});
    } catch (...) {
      if (won || win()) failure = std::current_exception();
    }
    group.request_stop();
  };
  task_group group;  // ends before what its fibers refer to, also when a spawn throws
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (group.spawn([&] { run(group, std::integral_constant<std::size_t, I>(), std::forward<F>(functions)); }), ...);
  }(std::index_sequence_for<F...>());
  group.wait();
  if (failure) std::rethrow_exception(failure);
  return std::move(*first);
}

}  // namespace ulexite
