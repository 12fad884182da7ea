#pragma once

#include <ulexite/runtime/join_handle.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <source_location>
#include <stop_token>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ulexite {

// How to start a fiber.
struct fiber_options {
  std::string_view name{};     // copied; appears in reports
  std::size_t stack_size = 0;  // bytes, rounded up to a power of two from 16 KiB on; 0: runtime_options::stack_size
  std::source_location where = std::source_location::current();  // the place of the spawn, in reports
};

namespace detail {

// A callable and decayed copies of its arguments, called once.
template <class F, class... A>
auto bind_arguments(F&& function, A&&... arguments) {
  if constexpr (sizeof...(A) == 0) {
    return std::decay_t<F>(std::forward<F>(function));
  } else {
    return [function = std::decay_t<F>(std::forward<F>(function)),
            arguments = std::tuple<std::decay_t<A>...>(std::forward<A>(arguments)...)]() mutable -> decltype(auto) {
      return std::apply(
          [&](auto&... values) -> decltype(auto) { return std::invoke(std::move(function), std::move(values)...); },
          arguments);
    };
  }
}

// As above, for a function that takes a std::stop_token first: it gets the token of its own fiber.
template <class F, class... A>
auto bind_once(F&& function, A&&... arguments) {
  if constexpr (std::is_invocable_v<std::decay_t<F>, std::stop_token, std::decay_t<A>...>) {
    return bind_arguments(
        [function = std::decay_t<F>(std::forward<F>(function))](auto&&... values) mutable -> decltype(auto) {
          return std::invoke(std::move(function), this_stop_token(), std::forward<decltype(values)>(values)...);
        },
        std::forward<A>(arguments)...);
  } else {
    return bind_arguments(std::forward<F>(function), std::forward<A>(arguments)...);
  }
}

inline task_options to_task_options(const fiber_options& options) noexcept {
  return {.name = options.name, .stack_size = options.stack_size, .where = options.where};
}

template <class Runtime, class F, class... A>
auto spawn_in(Runtime&& rt, const task_options& options, F&& function, A&&... arguments) {
  auto& task = spawn_task(rt, options, bind_once(std::forward<F>(function), std::forward<A>(arguments)...));
  return handle_access::handle_of(task);
}

// Whether a spawn may call F with copies of A... For a parameter that is a reference pass std::ref(argument).
template <class F, class... A>
concept spawnable = std::is_invocable_v<std::decay_t<F>, std::decay_t<A>...> ||
                    std::is_invocable_v<std::decay_t<F>, std::stop_token, std::decay_t<A>...>;

// Calls the private start(task_options, function, arguments...) of a runtime, context or group.
struct spawn_access {
  template <class Starter, class F, class... A>
  static auto start(Starter& in, const task_options& options, F&& function, A&&... arguments) {
    return in.start(options, std::forward<F>(function), std::forward<A>(arguments)...);
  }
};

}  // namespace detail

// Starts a fiber that calls `function` in the runtime of the calling fiber or job, and returns its join_handle<R>. A
// function that takes a std::stop_token first gets the fiber's own, as with std::jthread. The fiber inherits the
// caller's deadline. Never waits. The fiber runs soon, on any worker; fibers spawned by one fiber start in that order
// unless they are stolen. Throws std::system_error: errc::no_runtime outside a runtime, errc::limit_reached above
// max_fibers; std::bad_alloc.
template <detail::spawnable F>
auto spawn(F&& function, std::source_location where = std::source_location::current()) {
  return detail::spawn_in(detail::callers_runtime(), {.where = where}, std::forward<F>(function));
}

// As above, with arguments, which are copied or moved into the fiber as by std::thread.
template <class F, class... A>
  requires(sizeof...(A) > 0 && detail::spawnable<F, A...>)
[[gnu::always_inline]] inline auto spawn(F&& function, A&&... arguments) {
  const detail::spawn_place where(detail::code_address());
  return detail::spawn_in(detail::callers_runtime(), {.where = where}, std::forward<F>(function),
                          std::forward<A>(arguments)...);
}

// As above, with a name, a stack size and the place of the call. Also throws std::invalid_argument for a stack size
// above 1 GiB, and std::system_error if the system refuses the first stack of this size. If it refuses a later stack,
// the fiber waits for one.
template <class F, class... A>
  requires detail::spawnable<F, A...>
auto spawn(const fiber_options& options, F&& function, A&&... arguments) {
  return detail::spawn_in(detail::callers_runtime(), detail::to_task_options(options), std::forward<F>(function),
                          std::forward<A>(arguments)...);
}

// The spawn functions of runtimes, contexts and groups, which are derived from it. They have the forms of
// ulexite::spawn; the class says what else they do.
template <class Starter>
class spawn_interface {
 public:
  // Starts a fiber.
  template <class F, std::same_as<std::source_location> Place = std::source_location>  // checked before F
    requires detail::spawnable<F>
  auto spawn(F&& function, Place where = std::source_location::current()) {
    return detail::spawn_access::start(static_cast<Starter&>(*this), {.where = where}, std::forward<F>(function));
  }
  template <class F, class... A>
    requires(sizeof...(A) > 0 && detail::spawnable<F, A...>)
  [[gnu::always_inline]] auto spawn(F&& function, A&&... arguments) {
    const detail::spawn_place where(detail::code_address());
    return detail::spawn_access::start(static_cast<Starter&>(*this), {.where = where}, std::forward<F>(function),
                                       std::forward<A>(arguments)...);
  }
  template <class F, class... A>
    requires detail::spawnable<F, A...>
  auto spawn(const fiber_options& options, F&& function, A&&... arguments) {
    return detail::spawn_access::start(static_cast<Starter&>(*this), detail::to_task_options(options),
                                       std::forward<F>(function), std::forward<A>(arguments)...);
  }

 protected:
  spawn_interface() = default;
  ~spawn_interface() = default;
};

}  // namespace ulexite
