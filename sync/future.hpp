#pragma once

// A value that is set once, with the interface of std::promise, std::future and std::shared_future.
//
// The promise makes one allocation, the state that it shares with its futures. Setting, waiting and taking allocate
// nothing.

#include <ulexite/runtime/no_yield.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/select.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ulexite {

namespace detail {

// The state that a promise and its future share, without the value.
class future_state_base {
 public:
  // The promise's side. Of several calls one succeeds; the others fail with promise_already_satisfied.
  //
  // Calls `put`, which stores the value. If `put` throws, the promise is not satisfied.
  template <class Put>
  void satisfy(Put&& put) {
    const no_yield_scope here;  // it may be in a callback, or under a lock of another library
    const std::lock_guard lock(setting_);
    throw_if_satisfied();
    put();
    ready_.set();
  }
  void fail(std::exception_ptr exception);
  void abandon() noexcept;  // the promise was destroyed: broken_promise unless it was satisfied
  void mark_retrieved();    // the future is taken, which is possible once

  // The future's side. Waits; false if `deadline` passed first. Not a cancellation point.
  bool wait(std::int64_t deadline = no_deadline);
  void rethrow_failure();  // once it is ready
  // Set once the wait is over.
  [[nodiscard]] ulexite::event& ready() noexcept { return ready_; }

 private:
  void throw_if_satisfied() const;

  mutex setting_;         // held by the setter
  ulexite::event ready_;  // set once the members below and the value are final
  std::exception_ptr failure_;
  bool broken_ = false;
  std::atomic<bool> retrieved_{false};  // State: get_future was called; set once, by its caller
};

template <class T>
class future_state : public future_state_base {
 public:
  std::optional<T> value;
};

template <class T>
using future_value = std::conditional_t<std::is_void_v<T>, std::monostate,
                                        std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;
template <class T>
using shared_future_state = std::shared_ptr<future_state<future_value<T>>>;

[[noreturn, gnu::cold]] void throw_future_error(std::future_errc code);

template <class T>
class basic_promise;

// The common part of future and shared_future.
template <class T>
class basic_future {
 public:
  // Whether there is a state, so that the other operations may be called.
  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }

  // Waits until the promise is satisfied or destroyed. Takes nothing. Not a cancellation point, as join_handle::join:
  // whoever keeps the promise often refers to variables of its waiter; on_ready in a select is one.
  void wait() const { checked()->wait(); }
  // Wait as wait(), at most for `time`, or until `time`. Return timeout if the time passed first, otherwise ready.
  [[nodiscard]] std::future_status wait_for(relative_timeout time) const { return wait_until_ns(time.deadline()); }
  [[nodiscard]] std::future_status wait_until(absolute_timeout time) const { return wait_until_ns(time.deadline()); }

 protected:
  basic_future() noexcept = default;
  explicit basic_future(shared_future_state<T> state) noexcept : state_(std::move(state)) {}

  const shared_future_state<T>& checked() const {
    if (!state_) throw_future_error(std::future_errc::no_state);
    return state_;
  }
  shared_future_state<T> state_;

 private:
  friend struct future_access;

  std::future_status wait_until_ns(std::int64_t deadline) const {
    return checked()->wait(deadline) ? std::future_status::ready : std::future_status::timeout;
  }
};

// For select.
struct future_access {
  template <class T>
  static ulexite::event& ready(const basic_future<T>& of) {
    return of.checked()->ready();
  }
};

}  // namespace detail

template <class T>
class shared_future;

// Waits for the value of a promise<T>; T may be void or a reference. Movable. One fiber or plain thread may use it at a
// time. A future has no state if it never had one, was moved from, or get() was called. Then all operations except
// valid() throw std::future_error(no_state).
template <class T>
class future : public detail::basic_future<T> {
 public:
  future() noexcept = default;
  future(future&&) noexcept = default;
  future& operator=(future&&) noexcept = default;

  // Waits until the promise is satisfied. Returns the value, by move, or throws the exception. Throws
  // std::future_error(broken_promise) if the promise was destroyed first. Afterwards the future has no state. Not a
  // cancellation point.
  T get() {
    this->checked();
    this->state_->wait();
    const auto state = std::move(this->state_);
    state->rethrow_failure();
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**state->value);
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(*state->value);
    }
  }

  // Moves the state into a future that can be copied. Afterwards this future has no state.
  [[nodiscard]] shared_future<T> share() noexcept;

 private:
  friend shared_future<T>;
  friend detail::basic_promise<T>;
  explicit future(detail::shared_future_state<T> state) noexcept : detail::basic_future<T>(std::move(state)) {}
};

// A future that can be copied, and that keeps its value. Several fibers and threads may each use a copy at the same
// time.
template <class T>
class shared_future : public detail::basic_future<T> {
  using result = std::conditional_t<std::is_void_v<T>, void, std::add_lvalue_reference_t<const T>>;

 public:
  shared_future() noexcept = default;
  // Takes over the state of `from`.
  shared_future(future<T>&& from) noexcept : detail::basic_future<T>(std::move(from.state_)) {}

  // Waits until the promise is satisfied. Returns a reference to the value, or throws the exception, as future::get
  // does. May be called again. The reference is valid as long as a copy of this future exists.
  result get() const {
    auto& state = *this->checked();
    state.wait();
    state.rethrow_failure();
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**state.value);
    } else if constexpr (!std::is_void_v<T>) {
      return *state.value;
    }
  }
};

template <class T>
shared_future<T> future<T>::share() noexcept {
  return shared_future<T>(std::move(*this));
}

// A case of select that is ready when the promise of `of` is satisfied or destroyed: handler(). get() does not wait
// then. Throws std::future_error(no_state).
template <class T, class Handler = detail::no_handler>
[[nodiscard]] auto on_ready(const future<T>& of, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::plain_case<detail::event_case, Handler>(detail::future_access::ready(of),
                                                         std::forward<Handler>(handler));
}
template <class T, class Handler = detail::no_handler>
[[nodiscard]] auto on_ready(const shared_future<T>& of, Handler&& handler = {}) {
  detail::check_plain_handler<Handler>();
  return detail::plain_case<detail::event_case, Handler>(detail::future_access::ready(of),
                                                         std::forward<Handler>(handler));
}

namespace detail {

// The parts of promise<T> except set_value.
template <class T>
class basic_promise {
 public:
  // Throws std::bad_alloc.
  basic_promise() : state_(std::make_shared<typename shared_future_state<T>::element_type>()) {}
  basic_promise(basic_promise&&) noexcept = default;
  basic_promise& operator=(basic_promise&& other) noexcept {
    if (this != &other) {
      abandon();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~basic_promise() { abandon(); }

  // The future of this promise. Never waits. Throws std::future_error: future_already_retrieved the second time,
  // no_state if the promise was moved from.
  [[nodiscard]] future<T> get_future() {
    auto state = checked();
    state->mark_retrieved();
    return future<T>(std::move(state));
  }

  // Satisfies the promise with an exception, which must not be null (usage_error). Waits only while another caller sets
  // it. Throws std::future_error: promise_already_satisfied, or no_state if the promise was moved from.
  void set_exception(std::exception_ptr exception) { checked()->fail(std::move(exception)); }

 protected:
  template <class... Value>
  void set(Value&&... value) {
    const auto state = checked();
    state->satisfy([&] { state->value.emplace(std::forward<Value>(value)...); });
  }

 private:
  // Returns a copy, because the promise may be destroyed as soon as its future is ready, while the setter's call still
  // runs.
  shared_future_state<T> checked() const {
    if (!state_) throw_future_error(std::future_errc::no_state);
    return state_;
  }
  void abandon() noexcept {
    if (state_) state_->abandon();
  }

  shared_future_state<T> state_;
};

}  // namespace detail

// Sets the value, or the exception, of its future. Movable. Any fiber or plain thread may set it; of several setters
// one succeeds. If it is destroyed unsatisfied, its future throws std::future_error(broken_promise). It may be
// destroyed as soon as a wait of its future has returned, even if the call that ended the wait is still running.
template <class T>
class promise : public detail::basic_promise<T> {
 public:
  // Satisfies the promise. Waits only while another caller sets it. Throws std::future_error:
  // promise_already_satisfied, or no_state if the promise was moved from. If the copy or move of the value throws, the
  // promise is not satisfied.
  void set_value(const T& value) { this->set(value); }
  void set_value(T&& value) { this->set(std::move(value)); }
};

// A promise of a reference to an object that lives elsewhere.
template <class T>
class promise<T&> : public detail::basic_promise<T&> {
 public:
  // Satisfies the promise with a reference. Throws as the set_value of promise<T> does.
  void set_value(T& value) { this->set(&value); }
};

// A promise without a value.
template <>
class promise<void> : public detail::basic_promise<void> {
 public:
  // Satisfies the promise. Throws as the set_value of promise<T> does.
  void set_value() { this->set(); }
};

}  // namespace ulexite
