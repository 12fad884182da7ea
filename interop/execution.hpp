#pragma once

// Senders of std::execution (P2300R10, as in the draft of C++26) on the workers. The library itself needs no senders;
// this header does. It takes the standard library's, else stdexec, else beman::execution, whichever it finds. Define
// ULEXITE_SENDERS as the namespace of the senders to choose a library, and include that library first.
//
//   namespace ue = ulexite::execution;
//   auto [n] = *ue::wait(stdexec::schedule(ue::workers()) | stdexec::then([] { return blocks_in_a_fiber(); }));
//   auto both = stdexec::when_all(ue::spawn_sender(ue::workers(), f), ue::spawn_sender(ue::workers(), g));
//   int m = co_await ue::awaitable(stdexec::just(1));  // in a ulexite::task<T>

#include <ulexite/base/error.hpp>
#include <ulexite/interop/execution_schedulers.hpp>
#include <ulexite/runtime/join_handle.hpp>
#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace ulexite::execution {

// A sender that calls a function in a fiber of `on`. Completes with its value or its exception, or with set_stopped if
// the function ends by operation_cancelled after the fiber was asked to stop, or after its inherited deadline has
// passed. A stop of the receiver's token asks the fiber to stop. The fiber inherits the deadline of the fiber that
// starts the operation. It may be connected more than once if the function can be copied. Starting it allocates as
// spawn does.
template <class F>
class spawn_sender {
  using R = std::invoke_result_t<F>;
  static_assert(!std::is_reference_v<R>, "spawn_sender has no references as values: return a pointer");
  template <class T>
  struct completion {
    using type = detail::ex::set_value_t(T);
  };
  using kept = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

 public:
  using sender_concept = detail::ex::sender_tag;  // as std::execution demands
  // As std::execution demands.
  using completion_signatures = detail::ex::completion_signatures<
      typename std::conditional_t<std::is_void_v<R>, std::type_identity<detail::ex::set_value_t()>,
                                  completion<kept>>::type,
      detail::ex::set_error_t(std::exception_ptr), detail::ex::set_stopped_t()>;
  // As std::execution demands.
  template <class...>
  static consteval completion_signatures get_completion_signatures() noexcept {
    return {};
  }

  // Calls `function` on `on` when it is started.
  spawn_sender(fiber_scheduler on, F function) : on_(on), function_(std::move(function)) {}
  // The operation, which calls the function when it is started.
  template <class Receiver>
  [[nodiscard]] auto connect(Receiver to) && {
    return operation<Receiver>(on_, std::move(function_), std::move(to));
  }
  template <class Receiver>
  [[nodiscard]] auto connect(Receiver to) const& {
    return operation<Receiver>(on_, function_, std::move(to));
  }

 private:
  template <class Receiver>
  struct operation {
    using operation_state_concept = detail::ex::operation_state_tag;
    struct ask {
      operation* of;
      void operator()() const noexcept { of->fiber.request_stop(); }
    };
    using token = decltype(detail::stop::get_stop_token(detail::ex::get_env(std::declval<const Receiver&>())));
    using callback = detail::stop::stop_callback_for_t<token, ask>;

    fiber_scheduler on;
    F function;
    Receiver to;
    join_handle<> fiber;
    std::optional<callback> on_stop;
    event armed;  // the fiber may end the operation

    operation(fiber_scheduler s, F f, Receiver r) : on(s), function(std::move(f)), to(std::move(r)) {}
    operation(operation&&) = delete;

    void start() & noexcept {
      if (detail::stop_wanted(to)) return detail::ex::set_stopped(std::move(to));
      try {
        fiber = on.spawn(ulexite::detail::awaited_call{[this]() noexcept { body(); }});
      } catch (...) {
        return detail::ex::set_error(std::move(to), std::current_exception());
      }
      on_stop.emplace(detail::stop::get_stop_token(detail::ex::get_env(to)), ask{this});
      armed.set();
    }

    static bool must_stop() noexcept {
      try {
        this_fiber::check();
        return false;
      } catch (const operation_cancelled&) {
        return true;
      }
    }

    void body() noexcept {
      std::exception_ptr failure;
      std::optional<kept> value;
      try {
        if constexpr (std::is_void_v<R>) {
          std::move(function)();
          value.emplace();
        } else {
          value.emplace(std::move(function)());
        }
      } catch (const operation_cancelled&) {
        if (!must_stop()) failure = std::current_exception();  // of a fiber or a time limit that the function has used
      } catch (...) {
        failure = std::current_exception();
      }
      {
        const shield until_armed;  // not until complete: what follows in this fiber can be cancelled
        armed.wait();
      }
      on_stop.reset();  // waits for a call under way
      fiber.detach();
      Receiver last = std::move(to);  // the completion may end the operation's life
      if (failure) return detail::ex::set_error(std::move(last), std::move(failure));
      if (!value) return detail::ex::set_stopped(std::move(last));
      if constexpr (std::is_void_v<R>) {
        detail::ex::set_value(std::move(last));
      } else {
        detail::ex::set_value(std::move(last), std::move(*value));
      }
    }
  };

  fiber_scheduler on_;
  F function_;
};

namespace detail {

struct home_environment {
  runtime* home;  // null on a plain thread
  [[nodiscard]] fiber_scheduler query(ex::get_scheduler_t) const noexcept { return fiber_scheduler(home); }
  [[nodiscard]] fiber_scheduler query(ex::get_start_scheduler_t) const noexcept { return fiber_scheduler(home); }
  [[nodiscard]] fiber_scheduler query(ex::get_delegation_scheduler_t) const noexcept { return fiber_scheduler(home); }
};
struct wait_environment : home_environment {
  wait_environment(runtime* in, stop::inplace_stop_source& of) noexcept : home_environment{in}, source(&of) {}
  using home_environment::query;
  [[nodiscard]] auto query(stop::get_stop_token_t) const noexcept { return source->get_token(); }
  stop::inplace_stop_source* source;
};

// One completion with values: a tuple of them. Several: a variant of their tuples. None: a tuple that is never made.
template <class... Tuples>
struct one_or_variant {
  using type = std::variant<Tuples...>;
};
template <class Tuple>
struct one_or_variant<Tuple> {
  using type = Tuple;
};
template <>
struct one_or_variant<> {
  using type = std::tuple<>;
};
template <class... Ts>
using decayed_tuple = std::tuple<std::decay_t<Ts>...>;
template <class... Tuples>
using one_or_variant_t = typename one_or_variant<Tuples...>::type;
template <class Sender, class Environment>
using values_of = ex::value_types_of_t<Sender, Environment, decayed_tuple, one_or_variant_t>;

// How an operation has ended: with a value, an error, or neither if it was stopped.
template <class Result>
struct outcome {
  std::optional<Result> value;
  std::exception_ptr failure;
  runtime* home = in_fiber() ? &current_runtime() : nullptr;

  template <class... Ts>
  void keep(Ts&&... values) noexcept {
    try {
      if constexpr (std::is_constructible_v<Result, std::in_place_type_t<decayed_tuple<Ts...>>, Ts...>) {
        value.emplace(std::in_place_type<decayed_tuple<Ts...>>, std::forward<Ts>(values)...);
      } else {
        value.emplace(std::forward<Ts>(values)...);
      }
    } catch (...) {
      failure = std::current_exception();
    }
  }
  template <class E>
  void keep_error(E&& error) noexcept {
    if constexpr (std::is_same_v<std::decay_t<E>, std::exception_ptr>) {
      failure = std::forward<E>(error);
    } else if constexpr (std::is_same_v<std::decay_t<E>, std::error_code>) {
      failure = std::make_exception_ptr(std::system_error(error));
    } else {
      failure = std::make_exception_ptr(std::forward<E>(error));
    }
  }
};

template <class Result>
struct blocked : outcome<Result> {
  event done;
  stop::inplace_stop_source source;
  void complete() noexcept { done.set(); }
  [[nodiscard]] wait_environment environment() noexcept { return {this->home, source}; }
};
template <class Result>
struct suspended : outcome<Result> {
  std::coroutine_handle<> waiting;
  void complete() noexcept { waiting.resume(); }
  [[nodiscard]] home_environment environment() noexcept { return {this->home}; }
};

// The receiver of an operation whose outcome is an Outcome. That may be gone when complete() returns.
template <class Outcome>
struct outcome_receiver {
  using receiver_concept = ex::receiver_tag;
  Outcome* to;

  template <class... Ts>
  void set_value(Ts&&... values) && noexcept {
    to->keep(std::forward<Ts>(values)...);
    to->complete();
  }
  template <class E>
  void set_error(E&& error) && noexcept {
    to->keep_error(std::forward<E>(error));
    to->complete();
  }
  void set_stopped() && noexcept { to->complete(); }
  [[nodiscard]] auto get_env() const noexcept { return to->environment(); }
};

template <class Sender>
class [[nodiscard]] sender_awaiter {
  using result = values_of<Sender, home_environment>;
  using receiver = outcome_receiver<suspended<result>>;

 public:
  explicit sender_awaiter(Sender&& of) : operation_(ex::connect(std::forward<Sender>(of), receiver{&outcome_})) {}
  sender_awaiter(const sender_awaiter&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  // The coroutine, and with it this object, may be gone before start has returned.
  void await_suspend(std::coroutine_handle<> waiting) noexcept {
    outcome_.waiting = waiting;
    ex::start(operation_);
  }
  auto await_resume() {
    if (outcome_.failure) std::rethrow_exception(outcome_.failure);
    if (!outcome_.value) {
      this_fiber::check();  // as in wait()
      throw operation_cancelled();
    }
    if constexpr (std::tuple_size_v<result> == 0) {
      return;
    } else if constexpr (std::tuple_size_v<result> == 1) {
      return std::get<0>(std::move(*outcome_.value));
    } else {
      return std::move(*outcome_.value);
    }
  }

 private:
  suspended<result> outcome_;
  decltype(ex::connect(std::declval<Sender>(), std::declval<receiver>())) operation_;
};

}  // namespace detail

// Starts `sender`, and waits in a fiber, or a plain thread, for its completion. Returns the tuple of its values, or a
// variant of tuples if it has several completions with values; nullopt for set_stopped. Throws its error: an exception,
// or a std::error_code as std::system_error. A cancellation point: a stop or a deadline of the caller requests a stop
// of the operation, and then the operation's end is waited for. Values are returned all the same, because the work was
// done, and an error is thrown; but instead of set_stopped it throws operation_cancelled or deadline_exceeded. The
// fiber leaves its worker while it waits, so such waits may nest at any depth on one worker.
template <class Sender>
auto wait(Sender&& sender) {
  using result = detail::values_of<Sender, detail::wait_environment>;
  ulexite::detail::throw_if_stopped();
  // Before the operation uses the caller's frame.
  ulexite::detail::check_may_wait(ulexite::detail::this_agent(), ulexite::detail::wait_kind::event);
  detail::blocked<result> outcome;
  auto operation =
      detail::ex::connect(std::forward<Sender>(sender), detail::outcome_receiver<detail::blocked<result>>{&outcome});
  detail::ex::start(operation);
  std::exception_ptr cause;
  try {
    outcome.done.wait();
  } catch (const operation_cancelled&) {
    cause = std::current_exception();
  }
  if (cause) {
    const shield until_complete;
    {
      // The destructor of a callback waits for a call under way, unless it runs on the thread that made the request. So
      // the fiber must not leave the thread in a callback.
      const no_suspend_scope in_callbacks("a stop callback of a sender");
      outcome.source.request_stop();
    }
    outcome.done.wait();
  }
  if (outcome.failure) std::rethrow_exception(outcome.failure);
  if (!outcome.value) {
    if (cause) std::rethrow_exception(cause);
    // A fiber of the operation has the caller's deadline, and may have met it first.
    this_fiber::check();
  }
  return std::move(outcome.value);
}

// A sender as an awaitable, for coroutines whose type knows no senders, such as ulexite::task<T>. co_await results in
// its one value, in a tuple of several, or in nothing. It throws the sender's error, and operation_cancelled or
// deadline_exceeded for set_stopped. A task continues on a worker; another coroutine continues where the sender
// completes. Not a cancellation point.
template <class Sender>
[[nodiscard]] auto awaitable(Sender&& sender) {
  return detail::sender_awaiter<Sender>(std::forward<Sender>(sender));
}

}  // namespace ulexite::execution
