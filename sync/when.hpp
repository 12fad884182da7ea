#pragma once

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <ranges>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ulexite {
namespace detail {

// The type of a result in a tuple.
template <class R>
using monostate_if_void = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

// The type of a result in a variant or vector, which hold no references.
template <class R>
using storable = std::conditional_t<std::is_reference_v<R>, std::reference_wrapper<std::remove_reference_t<R>>,
                                    monostate_if_void<R>>;

// Returns the value of call(), or std::monostate.
template <class Call>
monostate_if_void<std::invoke_result_t<Call>> value_or_monostate(Call&& call) {
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
concept handle_range = std::ranges::forward_range<R> && is_join_handle<std::ranges::range_value_t<R>>;
template <class R>
concept function_range =
    std::ranges::forward_range<R> && !handle_range<R> && std::invocable<std::ranges::range_reference_t<R>>;

// Calls a function that is in a place, of type F& or F&&. An F is kept for the call, because an element that a view
// returns by value does not outlive the loop.
template <class Function>
struct call_of {
  Function function;
  decltype(auto) operator()() { return std::invoke(std::forward<Function>(function)); }
};

template <class... F>
auto call_all(spawn_place where, F&&... functions) {
  check_may_wait_for_children();
  task_group group;
  std::tuple handles{spawn_access::start(group, {.where = where}, call_of<F&&>{std::forward<F>(functions)})...};
  group.wait();
  return std::apply(
      [](auto&... handle) {
        return std::tuple<monostate_if_void<spawned_result_t<std::invoke_result_t<F>>>...>{
            value_or_monostate([&]() -> decltype(auto) { return handle.get(); })...};
      },
      handles);
}

}  // namespace detail

// Calls all functions, each in a new fiber, and waits for all. Returns the tuple of their results, with std::monostate
// for void. The first failure cancels the others, and is thrown once all have ended. A cancellation point as
// task_group::wait. Throws as spawn.
template <std::invocable... F>
[[gnu::always_inline]] inline auto when_all(F&&... functions) {
  const detail::spawn_place where(detail::code_address());
  return detail::call_all(where, std::forward<F>(functions)...);
}

namespace detail {

struct pending_join final : join_case {
  explicit pending_join(task& of) noexcept : join_case(of), fiber(of) {}
  task& fiber;
};

// Waits until all fibers of `cases` have ended, or one has failed. Returns its failure. A cancellation point. Costs
// O(cases) for each fiber that ends.
template <class Cases>
std::exception_ptr await_ends(Cases&& cases) {
  std::vector<select_case*> pending;
  for (pending_join& each : cases) pending.push_back(&each);
  std::vector<select_case*> by_source;
  std::exception_ptr failure;
  while (!pending.empty() && !failure) {
    by_source = pending;
    (void)choose(pending, by_source, true, true);
    std::erase_if(pending, [&](select_case* each) {
      task& fiber = static_cast<pending_join*>(each)->fiber;
      const bool ended = fiber.done();
      if (ended && !failure) failure = fiber.failure;
      return ended;
    });
  }
  return failure;
}

inline constexpr std::size_t handles_of_one_waiter = 64;

// As above. For many cases it starts fibers that each wait for some of them, so the cost is not quadratic. Their group
// stops those that are not needed any more, and the caller alone asks the fibers of the handles to stop.
inline std::exception_ptr await_many_ends(std::deque<pending_join>& cases) {
  constexpr std::size_t share = handles_of_one_waiter;
  const agent& self = this_agent();
  if (cases.size() <= share || self.kind != agent_kind::fiber || self.waits_forbidden) return await_ends(cases);
  std::exception_ptr failure;
  task_group waiters;
  waiters.spawn_batch((cases.size() + share - 1) / share, [&](std::size_t i) {
    const auto begin = cases.begin() + static_cast<std::ptrdiff_t>(i * share);
    const std::size_t size = std::min(share, cases.size() - i * share);
    std::exception_ptr why = await_ends(std::ranges::subrange(begin, begin + static_cast<std::ptrdiff_t>(size)));
    if (why && waiters.request_stop()) failure = std::move(why);
  });
  waiters.wait();
  return failure;
}

}  // namespace detail

// Waits for the fibers of all handles, and empties the handles. Returns the vector of the results in the order of the
// handles (std::monostate for void, std::reference_wrapper for a reference). When a fiber has failed, asks the others
// to stop, and throws its exception once all have ended. A cancellation point: if the caller is asked to stop, the
// fibers are too. Throws usage_error for a handle without a fiber, or if another caller waits for one of the fibers.
// For more than 64 handles it starts fibers, and throws as spawn.
template <detail::handle_range Handles>
auto when_all(Handles&& handles) {
  using result = decltype(std::ranges::begin(handles)->get());
  std::deque<detail::pending_join> cases;
  for (auto& handle : handles) cases.emplace_back(detail::handle_access::task_of(handle, "when_all"));
  std::exception_ptr failure;
  try {
    failure = detail::await_many_ends(cases);
  } catch (const operation_cancelled&) {
    failure = std::current_exception();
  }
  if (failure)
    for (auto& handle : handles) handle.request_stop();
  std::vector<detail::storable<result>> values;
  values.reserve(cases.size());
  for (auto& handle : handles) {
    try {
      values.push_back(detail::value_or_monostate([&]() -> decltype(auto) { return handle.get(); }));
    } catch (...) {  // the failure of the fiber, or of the join, which leaves the handle its fiber
      if (!failure || handle.joinable()) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  return values;
}

// Calls all functions of a range, each in a new fiber, and returns the vector of their results. Otherwise as when_all
// of functions. The functions are called in place, not copied, except those that a view returns by value: they are
// moved.
template <detail::function_range Functions>
auto when_all(Functions&& functions, std::source_location where = std::source_location::current()) {
  using function = std::ranges::range_reference_t<Functions>;
  detail::check_may_wait_for_children();
  task_group group;
  std::vector<join_handle<detail::spawned_result_t<std::invoke_result_t<function>>>> handles;
  for (auto&& each : functions)
    handles.push_back(group.spawn(detail::call_of<function>{std::forward<decltype(each)>(each)}, where));
  group.wait();
  std::vector<detail::storable<detail::spawned_result_t<std::invoke_result_t<function>>>> values;
  values.reserve(handles.size());
  for (auto& each : handles)
    values.push_back(detail::value_or_monostate([&]() -> decltype(auto) { return each.get(); }));
  return values;
}

// The result of when_any: the position of the function that ended first, and its result in the alternative of that
// position. The type is std::monostate for void, std::reference_wrapper for a reference.
template <class... R>
struct when_any_result {
  std::size_t index = 0;                       // of the function that ended first
  std::variant<detail::storable<R>...> value;  // its result
};

// The result of when_any of a range: the position of the function or fiber that ended first, and its result. The type
// is std::monostate for void, std::reference_wrapper for a reference.
template <class R>
struct when_any_range_result {
  std::size_t index = 0;      // of the function or fiber that ended first
  detail::storable<R> value;  // its result
};

namespace detail {

// Functions in fibers of a group. The first that ends decides.
template <class Result>
class race {
 public:
  // Its fibers are started at `where`.
  explicit race(spawn_place where) : where_(where) { check_may_wait_for_children(); }
  race(const race&) = delete;
  race& operator=(const race&) = delete;

  // Starts a fiber that calls `call`; make(value) makes the Result. Returns nothing: `auto` lets clang read the body
  // together with the caller's, and so name the program's line with the refusal.
  template <class Call, class Make>
  auto start(Call call, Make make) {
    static_assert(!makes_coroutine<Call&>,
                  "when_any would drop a coroutine before it runs: pass the handles that co_spawn returns");
    spawn_access::start(group_, {.where = where_}, [this, call = std::move(call), make]() mutable { run(call, make); });
  }
  Result wait() {
    group_.wait();
    if (failure_) std::rethrow_exception(failure_);
    if (!first_) throw operation_cancelled();  // all were asked to stop before they had begun
    return std::move(*first_);
  }

 private:
  template <class Call, class Make>
  void run(Call& call, const Make& make) {
    bool won = false;
    const auto win = [&] {
      won = !decided_.exchange(true, std::memory_order_relaxed);  // published by group_.wait()
      return won;
    };
    try {
      decltype(auto) value = value_or_monostate(call);
      if (!win()) return;
      first_.emplace(make(std::forward<decltype(value)>(value)));
    } catch (...) {
      if (won || win()) failure_ = std::current_exception();
    }
    group_.request_stop();
  }

  const spawn_place where_;
  std::optional<Result> first_;
  std::exception_ptr failure_;
  std::atomic<bool> decided_{false};  // State: a function has ended; set once, by the function that ends first
  task_group group_;                  // destroyed before what its fibers use, also if a spawn throws
};

template <class... F>
auto call_any(spawn_place where, F&&... functions) {
  using result = when_any_result<std::invoke_result_t<F>...>;
  race<result> race(where);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (race.start(call_of<F&&>{std::forward<F>(functions)},
                [](auto&& value) {
                  return result{I,
                                decltype(result::value)(std::in_place_index<I>, std::forward<decltype(value)>(value))};
                }),
     ...);
  }(std::index_sequence_for<F...>());
  return race.wait();
}

}  // namespace detail

// Calls all functions, each in a new fiber. Returns the result of the first that ends, or throws its exception. Cancels
// the others, waits for their ends, and drops their results and exceptions. A cancellation point as task_group::wait.
// Throws as spawn.
template <std::invocable... F>
  requires(sizeof...(F) > 0)
[[gnu::always_inline]] inline auto when_any(F&&... functions) {
  static_assert((detail::transferable_result<std::invoke_result_t<F>> && ...),
                "each result of when_any must be void, a reference T& or movable");
  const detail::spawn_place where(detail::code_address());
  return detail::call_any(where, std::forward<F>(functions)...);
}

// As above, for the functions of a range. They are called in place, not copied, except those that a view returns by
// value: they are moved. Throws usage_error for an empty range.
template <detail::function_range Functions>
auto when_any(Functions&& functions, std::source_location where = std::source_location::current()) {
  using function = std::ranges::range_reference_t<Functions>;
  using result = when_any_range_result<std::invoke_result_t<function>>;
  if (std::ranges::empty(functions)) throw usage_error("when_any of no functions");
  detail::race<result> race(where);
  std::size_t index = 0;
  for (auto&& each : functions) {
    race.start(detail::call_of<function>{std::forward<decltype(each)>(each)},
               [index](auto&& value) { return result{index, std::forward<decltype(value)>(value)}; });
    ++index;
  }
  return race.wait();
}

// Waits until the first fiber of the handles has ended. Returns its position and result, or throws its exception. Asks
// the others to stop, waits for their ends, and drops their results and exceptions. Empties all handles. To keep the
// others running, use a join_set, or on_join in a select. A cancellation point: if the caller is asked to stop, the
// fibers are too. Throws usage_error for an empty range, a handle without a fiber, or if another caller waits for one
// of the fibers.
template <detail::handle_range Handles>
auto when_any(Handles&& handles) {
  using result = decltype(std::ranges::begin(handles)->get());
  std::deque<detail::pending_join> cases;
  std::vector<detail::select_case*> pending;
  for (auto& handle : handles)
    pending.push_back(&cases.emplace_back(detail::handle_access::task_of(handle, "when_any")));
  if (pending.empty()) throw usage_error("when_any of no handles");
  std::vector<detail::select_case*> by_source = pending;
  const detail::select_case* first = nullptr;
  std::exception_ptr failure;
  try {
    first = detail::choose(pending, by_source, false, true);
    detail::agent& self = detail::this_agent();
    const auto done = [](const detail::pending_join& each) { return each.fiber.done(); };
    if (self.waits_forbidden && !std::ranges::all_of(cases, done))
      detail::throw_wait_forbidden(self, detail::wait_kind::join);
  } catch (const operation_cancelled&) {
    failure = std::current_exception();
  }
  for (auto& handle : handles) handle.request_stop();
  const shield uninterrupted;
  std::optional<when_any_range_result<result>> chosen;
  std::size_t index = 0;
  for (auto& handle : handles) {
    const bool is_first = &cases[index] == first;
    try {
      decltype(auto) value = detail::value_or_monostate([&]() -> decltype(auto) { return handle.get(); });
      if (is_first) chosen.emplace(when_any_range_result<result>{index, std::forward<decltype(value)>(value)});
    } catch (...) {  // the failure of the fiber, or of the join, which leaves the handle its fiber
      if (is_first || handle.joinable()) failure = std::current_exception();
    }
    ++index;
  }
  if (failure) std::rethrow_exception(failure);
  return std::move(*chosen);
}

}  // namespace ulexite
