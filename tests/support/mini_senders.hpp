#pragma once

// The part of std::execution that interop/execution.hpp and its tests use, in its simplest form, because Debian has no
// library of senders. The names are those of C++26's draft with P4154R0. A stop source calls one callback.

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace mini {

struct sender_tag {};
struct receiver_tag {};
struct operation_state_tag {};
struct scheduler_tag {};
enum class forward_progress_guarantee { concurrent, parallel, weakly_parallel };

// completions
struct set_value_t {
  template <class R, class... Ts>
  void operator()(R&& r, Ts&&... values) const noexcept {
    std::forward<R>(r).set_value(std::forward<Ts>(values)...);
  }
};
struct set_error_t {
  template <class R, class E>
  void operator()(R&& r, E&& error) const noexcept {
    std::forward<R>(r).set_error(std::forward<E>(error));
  }
};
struct set_stopped_t {
  template <class R>
  void operator()(R&& r) const noexcept {
    std::forward<R>(r).set_stopped();
  }
};
inline constexpr set_value_t set_value{};
inline constexpr set_error_t set_error{};
inline constexpr set_stopped_t set_stopped{};

template <class... Signatures>
struct completion_signatures {};

// environments and queries
struct never_stop_token {
  template <class F>
  struct callback_type {
    callback_type(never_stop_token, F) noexcept {}
  };
  [[nodiscard]] static bool stop_requested() noexcept { return false; }
  [[nodiscard]] static bool stop_possible() noexcept { return false; }
};
template <class Query>
struct query_base {
  template <class Env>
  auto operator()(const Env& env) const noexcept -> decltype(env.query(std::declval<const Query&>())) {
    return env.query(static_cast<const Query&>(*this));
  }
};
struct get_scheduler_t : query_base<get_scheduler_t> {};
struct get_start_scheduler_t : query_base<get_start_scheduler_t> {};
struct get_delegation_scheduler_t : query_base<get_delegation_scheduler_t> {};
struct get_forward_progress_guarantee_t : query_base<get_forward_progress_guarantee_t> {};
template <class Tag>
struct get_completion_scheduler_t : query_base<get_completion_scheduler_t<Tag>> {};
struct get_stop_token_t {
  template <class Env>
  auto operator()(const Env& env) const noexcept {
    if constexpr (requires { env.query(*this); }) {
      return env.query(*this);
    } else {
      return never_stop_token();
    }
  }
};
inline constexpr get_stop_token_t get_stop_token{};
struct empty_env {};
struct get_env_t {
  template <class T>
  auto operator()(const T& of) const noexcept {
    if constexpr (requires { of.get_env(); }) {
      return of.get_env();
    } else {
      return empty_env();
    }
  }
};
inline constexpr get_env_t get_env{};

// stop tokens
class inplace_stop_source;
class inplace_stop_token {
 public:
  template <class F>
  class callback_type;
  explicit inplace_stop_token(inplace_stop_source* of) noexcept : of_(of) {}
  [[nodiscard]] bool stop_requested() const noexcept;
  [[nodiscard]] bool stop_possible() const noexcept { return true; }

 private:
  inplace_stop_source* of_;
};
class inplace_stop_source {
 public:
  [[nodiscard]] inplace_stop_token get_token() noexcept { return inplace_stop_token(this); }
  bool request_stop() noexcept {
    const bool first = !requested_.exchange(true);
    if (first) {
      ++calling_;
      if (auto* const at = callback_.exchange(nullptr)) at->call(at);
      --calling_;
    }
    return first;
  }
  struct node {
    void (*call)(node*) noexcept;
  };
  std::atomic<bool> requested_{false};
  std::atomic<int> calling_{0};
  std::atomic<node*> callback_{nullptr};
};
inline bool inplace_stop_token::stop_requested() const noexcept { return of_->requested_; }
template <class F>
class inplace_stop_token::callback_type : inplace_stop_source::node {
 public:
  callback_type(inplace_stop_token token, F f) : of_(token.of_), f_(std::move(f)) {
    call = [](inplace_stop_source::node* me) noexcept { static_cast<callback_type*>(me)->f_(); };
    of_->callback_ = this;
    if (of_->requested_ && of_->callback_.exchange(nullptr)) f_();
  }
  callback_type(callback_type&&) = delete;
  ~callback_type() {
    if (of_->callback_.exchange(nullptr)) return;
    while (of_->calling_ != 0) {
    }
  }

 private:
  inplace_stop_source* of_;
  F f_;
};
template <class Token, class F>
using stop_callback_for_t = typename Token::template callback_type<F>;

// An awaitable as a sender, of its result or its exception. The operation is a coroutine that awaits it.
template <class A>
concept awaitable = requires(A of) { std::move(of).operator co_await(); };
template <class A>
using awaited_t = decltype(std::declval<A>().operator co_await().await_resume());
struct awaiting_operation {
  struct promise_type {
    awaiting_operation get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    static std::suspend_always initial_suspend() noexcept { return {}; }
    static std::suspend_always final_suspend() noexcept { return {}; }
    static void return_void() noexcept {}
    static void unhandled_exception() noexcept { std::terminate(); }
  };
  awaiting_operation(std::coroutine_handle<promise_type> of) : frame(of) {}
  awaiting_operation(awaiting_operation&& other) noexcept : frame(std::exchange(other.frame, nullptr)) {}
  ~awaiting_operation() {
    if (frame) frame.destroy();
  }
  void start() noexcept { frame.resume(); }
  std::coroutine_handle<promise_type> frame;
};
// Calls a completion while the coroutine is suspended, because that may end the operation.
template <class F>
struct completing : std::suspend_always {
  explicit completing(F f) : function(std::move(f)) {}
  void await_suspend(std::coroutine_handle<>) noexcept { function(); }
  F function;
};
template <class A, class R>
awaiting_operation connect_awaitable(A of, R to) {
  std::exception_ptr failure;
  try {
    if constexpr (std::is_void_v<awaited_t<A>>) {
      co_await std::move(of);
      co_await completing([&] { mini::set_value(std::move(to)); });
    } else {
      auto value = co_await std::move(of);
      co_await completing([&] { mini::set_value(std::move(to), std::move(value)); });
    }
  } catch (...) {
    failure = std::current_exception();
  }
  co_await completing([&] { mini::set_error(std::move(to), std::move(failure)); });
}

// senders
struct connect_t {
  template <class S, class R>
  auto operator()(S&& s, R&& r) const {
    if constexpr (awaitable<S>) {
      return connect_awaitable(std::forward<S>(s), std::forward<R>(r));
    } else {
      return std::forward<S>(s).connect(std::forward<R>(r));
    }
  }
};
struct start_t {
  template <class O>
  void operator()(O& o) const noexcept {
    o.start();
  }
};
struct schedule_t {
  template <class S>
  auto operator()(S&& s) const {
    return s.schedule();
  }
};
inline constexpr connect_t connect{};
inline constexpr start_t start{};
inline constexpr schedule_t schedule{};
template <class S>
concept sender = std::derived_from<typename std::remove_cvref_t<S>::sender_concept, sender_tag>;
template <class S>
concept scheduler = std::derived_from<typename std::remove_cvref_t<S>::scheduler_concept, scheduler_tag> &&
                    std::equality_comparable<S> && requires(S s) {
                      { s.schedule() } -> sender;
                    };

namespace detail {
template <class... Ts>
struct list {};
template <template <class...> class Tuple, class Found, class... Rest>
struct values;
template <template <class...> class Tuple, class... Found>
struct values<Tuple, list<Found...>> {
  using type = list<Found...>;
};
template <template <class...> class Tuple, class... Found, class... Args, class... Rest>
struct values<Tuple, list<Found...>, set_value_t(Args...), Rest...>
    : values<Tuple, list<Found..., Tuple<Args...>>, Rest...> {};
template <template <class...> class Tuple, class... Found, class Other, class... Rest>
struct values<Tuple, list<Found...>, Other, Rest...> : values<Tuple, list<Found...>, Rest...> {};
template <template <class...> class Tuple, class Signatures>
struct values_of;
template <template <class...> class Tuple, class... Signatures>
struct values_of<Tuple, completion_signatures<Signatures...>> : values<Tuple, list<>, Signatures...> {};
template <template <class...> class Variant, class List>
struct apply;
template <template <class...> class Variant, class... Ts>
struct apply<Variant, list<Ts...>> {
  using type = Variant<Ts...>;
};
template <class T>
struct value_of {
  using signature = set_value_t(T);
};
template <>
struct value_of<void> {
  using signature = set_value_t();
};
template <class S>
struct signatures_of {
  using type = typename S::completion_signatures;
};
template <awaitable A>
struct signatures_of<A> {
  using type = completion_signatures<typename value_of<awaited_t<A>>::signature, set_error_t(std::exception_ptr)>;
};
}  // namespace detail
template <class S, class Env, template <class...> class Tuple, template <class...> class Variant>
using value_types_of_t = typename detail::apply<
    Variant,
    typename detail::values_of<Tuple, typename detail::signatures_of<std::remove_cvref_t<S>>::type>::type>::type;

template <class... Completions>
struct sender_of {
  using sender_concept = sender_tag;
  using completion_signatures = mini::completion_signatures<Completions...>;
};

// Completes at once, with Tag.
template <class Tag, class... Ts>
struct just_sender : sender_of<Tag(Ts...)> {
  template <class R>
  struct operation {
    std::tuple<Ts...> values;
    R to;
    void start() noexcept {
      std::apply([this](auto&... each) { Tag()(std::move(to), std::move(each)...); }, values);
    }
  };
  explicit just_sender(Ts... each) : values(std::move(each)...) {}
  template <class R>
  operation<R> connect(R to) const {
    return {values, std::move(to)};
  }
  std::tuple<Ts...> values;
};
template <class... Ts>
just_sender<set_value_t, Ts...> just(Ts... values) {
  return just_sender<set_value_t, Ts...>(std::move(values)...);
}
template <class E>
just_sender<set_error_t, E> just_error(E error) {
  return just_sender<set_error_t, E>(std::move(error));
}
inline just_sender<set_stopped_t> just_stopped() { return just_sender<set_stopped_t>(); }

// Calls a function with the values of the sender before, and completes with its value or its exception.
template <class F, class R>
struct then_receiver {
  using receiver_concept = receiver_tag;
  F function;
  R to;
  template <class... Ts>
  void set_value(Ts&&... values) noexcept {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<F, Ts...>>) {
        function(std::forward<Ts>(values)...);
        mini::set_value(std::move(to));
      } else {
        mini::set_value(std::move(to), function(std::forward<Ts>(values)...));
      }
    } catch (...) {
      mini::set_error(std::move(to), std::current_exception());
    }
  }
  template <class E>
  void set_error(E&& error) noexcept {
    mini::set_error(std::move(to), std::forward<E>(error));
  }
  void set_stopped() noexcept { mini::set_stopped(std::move(to)); }
  auto get_env() const noexcept { return mini::get_env(to); }
};
template <class S, class F>
struct then_sender {
  template <class... Ts>
  using result = std::invoke_result<F, Ts...>;
  template <class Result>
  using only = typename detail::value_of<typename Result::type>::signature;
  using sender_concept = sender_tag;
  using completion_signatures = mini::completion_signatures<value_types_of_t<S, empty_env, result, only>,
                                                            set_error_t(std::exception_ptr), set_stopped_t()>;
  template <class R>
  auto connect(R to) const {
    return before.connect(then_receiver<F, R>{function, std::move(to)});
  }
  S before;
  F function;
};
template <class F>
struct then {
  explicit then(F f) : function(std::move(f)) {}
  template <class S>
  friend then_sender<S, F> operator|(S before, then after) {
    return {std::move(before), std::move(after.function)};
  }
  F function;
};

// what a backend of the parallel_scheduler is made of
namespace parallel_scheduler_replacement {
struct receiver_proxy {
  virtual ~receiver_proxy() = default;
  virtual void set_value() noexcept = 0;
  virtual void set_error(std::exception_ptr) noexcept = 0;
  virtual void set_stopped() noexcept = 0;
};
struct bulk_item_receiver_proxy : receiver_proxy {
  virtual void execute(std::size_t from, std::size_t until) noexcept = 0;
};
struct parallel_scheduler_backend {
  virtual ~parallel_scheduler_backend() = default;
  virtual void schedule(receiver_proxy&, std::span<std::byte>) noexcept = 0;
  virtual void schedule_bulk_chunked(std::size_t, bulk_item_receiver_proxy&, std::span<std::byte>) noexcept = 0;
  virtual void schedule_bulk_unchunked(std::size_t, bulk_item_receiver_proxy&, std::span<std::byte>) noexcept = 0;
};
}  // namespace parallel_scheduler_replacement

}  // namespace mini
