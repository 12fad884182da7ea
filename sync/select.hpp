#pragma once

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/join_handle.hpp>
#include <ulexite/sync/select/acquire_case.hpp>
#include <ulexite/sync/select/channel_case.hpp>
#include <ulexite/sync/select/event_case.hpp>
#include <ulexite/sync/select/timer_case.hpp>
#include <ulexite/sync/wait/stop_claim.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ulexite {

namespace detail {

struct no_handler {
  template <class... Value>
  void operator()(Value&&...) const noexcept {}
};

// Checks the handler of a case without a value.
template <class Handler>
constexpr void check_plain_handler() {
  static_assert(std::is_invocable_v<Handler>, "the handler of this case of select takes no arguments");
}

template <class T, class Handler>
class receive_case final : public receive_case_base<T> {
 public:
  receive_case(channel<T>& from, Handler&& handler)
      : receive_case_base<T>(from), handler_(std::forward<Handler>(handler)) {}
  void run() { call_function(std::forward<Handler>(handler_), std::move(this->value)); }

 private:
  Handler handler_;
};

// Converts as for an argument of send.
template <class T, class V>
T converted(V&& value) {
  return std::forward<V>(value);
}

// Holds the value of an rvalue, refers to that of an lvalue.
template <class T>
struct sent_value {
  T held;
};

template <class T, class Value, class Handler>
class send_case final : private sent_value<Value>, public send_case_base<T> {
 public:
  template <class V>
  send_case(channel<T>& to, V&& value, Handler&& handler)
      : sent_value<Value>{converted<Value>(std::forward<V>(value))},
        send_case_base<T>(to, this->held),
        handler_(std::forward<Handler>(handler)) {}
  void run() {
    if (this->closed()) throw channel_closed();
    call_function(std::forward<Handler>(handler_));
  }

 private:
  Handler handler_;
};

class join_case : public select_case {
 public:
  explicit join_case(task& of) noexcept : select_case(of.guard()), of_(of) {}
  [[nodiscard]] bool attempt(agent*&) final {
    if (of_.has_ended()) return true;
    of_.check_joiner(this_agent());
    return false;
  }
  void enter(agent& self) noexcept final {
    entered_ = !of_.has_joiner();  // false: another case of this select is the joiner for both
    if (entered_) of_.set_joiner(&self);
  }
  [[nodiscard]] ending leave() noexcept final {
    if (!entered_) return ending::other;
    const bool claimed = !of_.has_joiner();
    of_.set_joiner(nullptr);
    return claimed ? ending::chosen : ending::other;
  }

 protected:
  ~join_case() = default;

 private:
  task& of_;
  bool entered_ = false;
};

class stop_case : public select_case {
 public:
  explicit stop_case(std::stop_token token) noexcept : token_(std::move(token)) { enabled = token_.stop_possible(); }
  [[nodiscard]] bool attempt(agent*&) final { return token_.stop_requested(); }
  void enter(agent& self) noexcept final { claim_.watch(token_, self); }
  [[nodiscard]] ending leave() noexcept final { return claim_.deregister() ? ending::chosen : ending::other; }

 protected:
  ~stop_case() = default;

 private:
  std::stop_token token_;
  stop_claim claim_;
};

// A case that has no value for its handler.
template <class Base, class Handler>
class plain_case final : public Base {
 public:
  template <class Source>
  plain_case(Source&& from, Handler&& handler)  // not `source`, which would hide the base's member
      : Base(std::forward<Source>(from)), handler_(std::forward<Handler>(handler)) {}
  void run() { call_function(std::forward<Handler>(handler_)); }

 private:
  Handler handler_;
};

// choose() does not see this case.
template <class Handler>
struct otherwise_case {
  Handler handler;
  bool enabled = true;
  void run() { call_function(std::forward<Handler>(handler)); }
};

template <class Case>
inline constexpr bool is_otherwise = false;
template <class Handler>
inline constexpr bool is_otherwise<otherwise_case<Handler>> = true;

template <class Case>
concept selectable =
    std::is_base_of_v<select_case, std::remove_cvref_t<Case>> || is_otherwise<std::remove_cvref_t<Case>>;

}  // namespace detail

// The cases of a select. A case is made in the call of select and ends with it. The selecting fiber calls `handler`
// after the choice, with no lock held. Its exceptions leave select. An lvalue handler is held by reference. A case may
// have no handler.

// A case that receives from `from`. Calls handler(std::optional<T>&&), with nullopt when the channel is closed and
// drained.
template <class T, class Handler = detail::no_handler>
[[nodiscard]] auto on_receive(channel<T>& from, Handler&& handler = {}) {
  static_assert(std::is_invocable_v<Handler, std::optional<T>>,
                "the handler of on_receive takes a std::optional<T>, T being what the channel carries");
  return detail::receive_case<T, Handler>(from, std::forward<Handler>(handler));
}

// A case that sends to `to`, then calls handler(). If the channel is closed the case is ready, and select throws
// channel_closed. A variable is moved from only if this case is chosen. A temporary that is not sent is destroyed.
template <class T, class Value, class Handler = detail::no_handler>
  requires std::is_same_v<Value, T&> || std::is_convertible_v<Value, T>
[[nodiscard]] auto on_send(channel<T>& to, Value&& value, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  if constexpr (std::is_same_v<Value, T&>) {
    return detail::send_case<T, T&, Handler>(to, value, std::forward<Handler>(handler));
  } else {
    return detail::send_case<T, T, Handler>(to, std::forward<Value>(value), std::forward<Handler>(handler));
  }
}

// A case that select takes once `time`, counted from this call, has passed and no other case is ready. Calls handler().
template <class Handler = detail::no_handler>
[[nodiscard]] auto after(relative_timeout time, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::plain_case<detail::timer_case, Handler>(time.deadline(), std::forward<Handler>(handler));
}

// A case that is ready when the fiber of `handle` has ended. Calls handler(). The handle keeps the result. Throws
// usage_error without a fiber; select throws it if another caller already waits for the fiber.
template <class T, class Handler = detail::no_handler>
[[nodiscard]] auto on_join(join_handle<T>& handle, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::plain_case<detail::join_case, Handler>(detail::handle_access::task_of(handle, "on_join"),
                                                        std::forward<Handler>(handler));
}

// A case that takes a permit of `from`. Calls handler(). The caller must release the permit, for example by
// semaphore_permit(from, std::adopt_lock).
template <std::ptrdiff_t Max, class Handler = detail::no_handler>
[[nodiscard]] auto on_acquire(counting_semaphore<Max>& from, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::plain_case<detail::acquire_case, Handler>(from, std::forward<Handler>(handler));
}

// A case that is ready while `of` is set. Calls handler().
template <class Handler = detail::no_handler>
[[nodiscard]] auto on_set(event& of, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::plain_case<detail::event_case, Handler>(of, std::forward<Handler>(handler));
}
// A case that takes a set() of `of`. Calls handler().
template <class Handler = detail::no_handler>
[[nodiscard]] auto on_set(auto_reset_event& of, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::plain_case<detail::acquire_case, Handler>(of, std::forward<Handler>(handler));
}

// A case that is ready when a stop is requested of `token`. Calls handler(). It is switched off if no stop is possible.
template <class Handler = detail::no_handler>
[[nodiscard]] auto on_stop(std::stop_token token, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::plain_case<detail::stop_case, Handler>(std::move(token), std::forward<Handler>(handler));
}

// A case that is taken if no other is ready, instead of a wait. Calls handler(). A select has at most one.
template <class Handler = detail::no_handler>
[[nodiscard]] auto otherwise(Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::otherwise_case<Handler>{std::forward<Handler>(handler)};
}

// Switches a case off unless `condition` holds. The case is made even if it is off, so its arguments are evaluated:
// when(!queue.empty(), on_send(to, queue.front())) is an error.
template <detail::selectable Case>
Case&& when(bool condition, Case&& which) noexcept {
  which.enabled = which.enabled && condition;
  return std::forward<Case>(which);
}

namespace detail {

// Runs the handler of the case that was chosen; null: that of the otherwise. Returns its index.
template <class... Case>
std::size_t run_chosen(const select_case* chosen, Case&... cases) {
  [[maybe_unused]] const auto is_chosen = [&]<class Each>(Each& each) {
    if constexpr (is_otherwise<Each>) {
      return !chosen && each.enabled;
    } else {
      return chosen == &each;
    }
  };
  std::size_t index = 0;
  (void)((is_chosen(cases) ? (cases.run(), true) : (++index, false)) || ...);
  return index;
}

template <class... Case>
std::size_t select_any(bool in_order, Case&... cases) {
  constexpr std::size_t count = sizeof...(Case);
  static_assert((0 + ... + is_otherwise<Case>) <= 1, "a select has at most one otherwise");
  std::array<select_case*, count + 1> enabled, by_source;
  std::size_t size = 0;
  bool may_wait = true;
  [[maybe_unused]] const auto add = [&]<class Each>(Each& each) {
    if (!each.enabled) return;
    if constexpr (is_otherwise<Each>) {
      may_wait = false;
    } else {
      enabled[size] = by_source[size] = &each;
      ++size;
    }
  };
  (add(cases), ...);
  if (size == 0 && may_wait) throw usage_error("select without a case that can ever be ready");
  return run_chosen(choose(std::span(enabled).first(size), std::span(by_source).first(size), in_order, may_wait),
                    cases...);
}

}  // namespace detail

// Waits until a case is ready, takes it, calls its handler, and returns its index. If several are ready, it takes any
// of them, or with in_order (which is not counted) the first. A channel may be in several cases, in both directions: a
// select never serves itself. A cancellation point. Allocates nothing; costs some locks per case. Throws
// operation_cancelled, channel_closed (see on_send), usage_error if no case is switched on.
//
//   select(on_receive(requests, [&](std::optional<request> r) { ... }),
//          on_send(results, result),
//          after(1s, [] { ... }));
template <detail::selectable... Case>
std::size_t select(Case&&... cases) {
  return detail::select_any(false, cases...);
}
template <detail::selectable... Case>
std::size_t select(in_order_t, Case&&... cases) {
  return detail::select_any(true, cases...);
}

}  // namespace ulexite
