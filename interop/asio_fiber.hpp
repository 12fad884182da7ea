#pragma once

// Boost.Asio's asynchronous operations in fibers, and the workers as an executor of Asio. Needs Boost 1.81. The library
// itself does not need Boost.Asio; this header does.
//
//   std::size_t n = async_read(socket, buffer(data), ulexite::use_fiber);         // throws boost::system::system_error
//   std::size_t n = async_read(socket, buffer(data), ulexite::use_fiber(error));  // sets a boost::system::error_code
//   ulexite::use_fiber_t::as_default_on_t<tcp::socket> socket(context);           // socket.async_connect(to);
//   ulexite::io_context_thread runs(context);                                     // a thread in context.run()
//   auto strand = boost::asio::make_strand(ulexite::fiber_executor());            // its handlers must not wait
//
// An operation runs where Asio runs it, which is a thread in io_context::run. Its end resumes the fiber, at the cost of
// a hand-over between threads, some 4 to 10 us for each operation. For sockets of your own, ulexite::net has no such
// cost.

#include <ulexite/base/error.hpp>
#include <ulexite/interop/asio_executor.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ulexite {

namespace detail::asio {
struct starter;
}

// A completion token. The initiating function waits for the end of the operation, and returns its results: nothing,
// a value, or a tuple of several. A first result of type error_code or exception_ptr is thrown instead, an error_code
// as boost::system::system_error. A handler that is destroyed without a call, for example with its io_context, ends the
// operation with boost::asio::error::operation_aborted.
//
// A cancellation point. A request to stop, or a deadline, cancels the operation on its executor, and its end is
// awaited, because it may use the fiber's buffers until then. If it ends by operation_aborted, the wait throws
// operation_cancelled or deadline_exceeded; otherwise its results are returned. An operation that cannot be cancelled,
// because neither its initiation nor an argument of that leads to an executor, or because its object ignores
// cancellation, is awaited too; so is each operation in an io_context that no thread runs, until a thread runs it or it
// is destroyed.
//
// Asio's adapters: redirect_error(use_fiber, error) is use_fiber(error), and as_tuple(use_fiber) returns the error_code
// and the results as a tuple. bind_executor(where, use_fiber) runs the steps of a composed operation on `where`, and
// bind_cancellation_slot leaves cancellations to its slot. So under both, and under nested adapters, a request to stop
// or a deadline cancels nothing, and the operation is awaited.
//
// Waits in fibers. Blocks a plain thread, which must not be one that runs the io_context. Throws usage_error, before it
// starts the operation, under a no_suspend_scope. Any number of fibers may have operations in one
// io_context. If several threads run it, each I/O object must be on a strand, because a cancellation is no more safe
// for threads than the object itself; and an object must not be used by two fibers that may call it at the same time.
class use_fiber_t {
 public:
  // The token use_fiber.
  constexpr use_fiber_t() = default;

  // A token that sets `error` to the error code of the operation, or clears it, and does not throw it. `error` must
  // live until the operation ends. Still throws operation_cancelled, deadline_exceeded, an exception_ptr of the
  // operation, and an error without results if these have no default constructor.
  [[nodiscard]] constexpr use_fiber_t operator()(boost::system::error_code& error) const noexcept {
    use_fiber_t made = *this;
    made.error_ = &error;
    return made;
  }
  // A token that cancels its operation by this type. The default is terminal, after which many objects can only be
  // closed. An operation that does not support `type` is not cancelled.
  [[nodiscard]] constexpr use_fiber_t cancelled_by(boost::asio::cancellation_type type) const noexcept {
    use_fiber_t made = *this;
    made.type_ = type;
    return made;
  }

  // An executor whose objects use this token if none is given, as Asio's tokens define it.
  template <class InnerExecutor>
  struct executor_with_default : InnerExecutor {
    // As Asio demands.
    using default_completion_token_type = use_fiber_t;
    // Adapts an executor.
    template <class Other>
      requires(!std::is_same_v<Other, executor_with_default> && std::is_convertible_v<Other, InnerExecutor>)
    executor_with_default(const Other& other) noexcept : InnerExecutor(other) {}
  };
  // The type of I/O object that uses this token if none is given.
  template <class Object>
  using as_default_on_t =
      typename Object::template rebind_executor<executor_with_default<typename Object::executor_type>>::other;
  // Such an object, made from another.
  template <class Object>
  static as_default_on_t<std::decay_t<Object>> as_default_on(Object&& object) {
    return as_default_on_t<std::decay_t<Object>>(std::forward<Object>(object));
  }

 private:
  friend struct detail::asio::starter;

  boost::system::error_code* error_ = nullptr;
  boost::asio::cancellation_type type_ = boost::asio::cancellation_type::terminal;
};

// The token that throws.
inline constexpr use_fiber_t use_fiber{};

namespace detail::asio {

// What a completion has besides its error.
template <class... Ts>
struct completion {
  using error = void;
  using values = std::tuple<Ts...>;
};
template <class E, class... Ts>
  requires std::is_same_v<E, boost::system::error_code> || std::is_same_v<E, std::exception_ptr>
struct completion<E, Ts...> {
  using error = E;
  using values = std::tuple<Ts...>;
};

// The operation, in the frame of its fiber. Only the handler refers to it besides, and `done` says that it is gone.
template <class Values>
struct operation {
  ulexite::event done;  // the handler was called, or destroyed
  std::optional<Values> values;
  boost::system::error_code error = boost::asio::error::operation_aborted;  // unless the handler is called
  std::exception_ptr failure;
  boost::asio::cancellation_signal signal;

  [[nodiscard]] bool was_aborted() const {
    if (!failure) return error == boost::asio::error::operation_aborted;
    try {
      std::rethrow_exception(failure);
    } catch (const boost::system::system_error& thrown) {
      return thrown.code() == boost::asio::error::operation_aborted;
    } catch (...) {
      return false;
    }
  }
};

template <class Completion>
class handler {
  using operation_type = operation<typename Completion::values>;

 public:
  using cancellation_slot_type = boost::asio::cancellation_slot;
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

  explicit handler(operation_type& of) noexcept : of_(&of), slot_(of.signal.slot()) {}
  handler(handler&& other) noexcept : of_(std::exchange(other.of_, nullptr)), slot_(other.slot_) {}
  handler& operator=(handler&&) = delete;
  ~handler() {
    if (of_) of_->done.set();
  }

  template <class... Args>
  void operator()(Args&&... results) {
    operation_type& to = *std::exchange(of_, nullptr);
    to.error.clear();
    try {
      if constexpr (std::is_void_v<typename Completion::error>) {
        to.values.emplace(std::forward<Args>(results)...);
      } else {
        keep(to, std::forward<Args>(results)...);
      }
    } catch (...) {  // a copy of a result
      to.failure = std::current_exception();
    }
    to.done.set();  // the last use of `to`
  }

 private:
  template <class E, class... Args>
  static void keep(operation_type& to, const E& error, Args&&... results) {
    if constexpr (std::is_same_v<typename Completion::error, std::exception_ptr>) {
      to.failure = error;
    } else {
      to.error = error;
    }
    to.values.emplace(std::forward<Args>(results)...);
  }

  operation_type* of_;  // null: moved from, or called
  cancellation_slot_type slot_;
};

// Sets an event at its end, also if an executor drops the function that holds it.
class sets_at_end {
 public:
  explicit sets_at_end(ulexite::event& which) noexcept : which_(&which) {}
  sets_at_end(sets_at_end&& other) noexcept : which_(std::exchange(other.which_, nullptr)) {}
  sets_at_end& operator=(sets_at_end&&) = delete;
  ~sets_at_end() {
    if (which_) which_->set();
  }

 private:
  ulexite::event* which_;
};

struct no_executor {};

// Where an operation runs, to be asked before its initiation is moved: the executor of the initiation, or of the first
// of its arguments that has one, which for Beast's operations is the stream, or has it.
template <class First, class... Rest>
auto executor_of(First& first, Rest&... rest) {
  if constexpr (requires { first.get_executor(); }) {
    return first.get_executor();
  } else if constexpr (requires { first->get_executor(); }) {
    return first->get_executor();
  } else if constexpr (requires { first->stream().get_executor(); }) {
    return first->stream().get_executor();
  } else if constexpr (sizeof...(Rest) != 0) {
    return executor_of(rest...);
  } else {
    return no_executor();
  }
}

// Waits for the end of a cancelled operation. A cancellation_signal is not safe for threads, so it is emitted where the
// operation runs. The emission is awaited too, because it may outlast the operation that it ends.
template <class Values, class Executor>
void cancel(operation<Values>& which, const Executor& where, boost::asio::cancellation_type type) {
  const shield until_the_end;
  if constexpr (!std::is_same_v<Executor, no_executor>) {
    if (!which.done.is_set()) {
      ulexite::event emitted;
      try {
        boost::asio::post(where, [&which, type, at_end = sets_at_end(emitted)] {
          if (!which.done.is_set()) which.signal.emit(type);
        });
      } catch (...) {  // no memory: the operation ends by itself. at_end is destroyed already
      }
      emitted.wait();
    }
  }
  which.done.wait();
}

// What a call returns. Known without a value, because overload resolution asks for types that cannot be made: for
// async_accept(socket, use_fiber) that of a socket whose executor is a socket.
template <class Values>
struct returned {
  using type = Values;
};
template <class T>
struct returned<std::tuple<T>> {
  using type = T;
};
template <>
struct returned<std::tuple<>> {
  using type = void;
};
template <class Values>
typename returned<Values>::type result_of(Values&& values) {
  if constexpr (std::tuple_size_v<Values> == 1) {
    return std::get<0>(std::move(values));
  } else if constexpr (std::tuple_size_v<Values> != 0) {
    return std::move(values);
  }
}

struct starter {
  template <class Completion, class Initiation, class... Args>
  static typename Completion::values start(const use_fiber_t& token, Initiation&& initiation, Args&&... args) {
    using values = typename Completion::values;
    check_may_wait(this_agent(), wait_kind::event);
    this_fiber::check();
    operation<values> started;
    const auto where = executor_of(initiation, args...);
    std::exception_ptr cause;
    try {
      std::forward<Initiation>(initiation)(handler<Completion>(started), std::forward<Args>(args)...);
      started.done.wait();
    } catch (...) {  // a cancellation, or the initiation failed
      cause = std::current_exception();
    }
    if (cause) {
      cancel(started, where, token.type_);
      if (started.was_aborted()) std::rethrow_exception(cause);
    }
    if (started.failure) std::rethrow_exception(started.failure);
    if (token.error_) *token.error_ = started.error;
    if constexpr (std::is_default_constructible_v<values>) {
      if (token.error_ && !started.values) started.values.emplace();
    }
    if (started.error && !(token.error_ && started.values)) throw boost::system::system_error(started.error);
    return std::move(*started.values);
  }
};

}  // namespace detail::asio

}  // namespace ulexite

// How the initiating functions of Asio treat the token.
template <class... Ts>
class boost::asio::async_result<ulexite::use_fiber_t, void(Ts...)> {
  using completion = ulexite::detail::asio::completion<std::decay_t<Ts>...>;

 public:
  // The results of the operation, as use_fiber_t has them.
  using return_type = typename ulexite::detail::asio::returned<typename completion::values>::type;

  // Starts an operation and waits for its end, as use_fiber_t says. Asio calls it.
  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, ulexite::use_fiber_t token, Args&&... args) {
    return ulexite::detail::asio::result_of(ulexite::detail::asio::starter::start<completion>(
        token, std::forward<Initiation>(initiation), std::forward<Args>(args)...));
  }
};

// Asio's adapters of the token would hide the executor, and a cancellation of the fiber. So these take their place.
template <class... Ts>
class boost::asio::async_result<boost::asio::as_tuple_t<ulexite::use_fiber_t>, void(boost::system::error_code, Ts...)> {
 public:
  // The error code and the results.
  using return_type = std::tuple<boost::system::error_code, std::decay_t<Ts>...>;

  // As of use_fiber_t.
  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, const as_tuple_t<ulexite::use_fiber_t>& token, Args&&... args) {
    using completion = ulexite::detail::asio::completion<boost::system::error_code, std::decay_t<Ts>...>;
    boost::system::error_code error;
    auto values = ulexite::detail::asio::starter::start<completion>(
        token.token_(error), std::forward<Initiation>(initiation), std::forward<Args>(args)...);
    return std::tuple_cat(std::tuple(error), std::move(values));
  }
};

template <class... Ts>
class boost::asio::async_result<boost::asio::redirect_error_t<ulexite::use_fiber_t>,
                                void(boost::system::error_code, Ts...)> {
  using plain = async_result<ulexite::use_fiber_t, void(boost::system::error_code, Ts...)>;

 public:
  // As of use_fiber_t.
  using return_type = typename plain::return_type;
  // As of use_fiber_t.
  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, const redirect_error_t<ulexite::use_fiber_t>& token,
                              Args&&... args) {
    return plain::initiate(std::forward<Initiation>(initiation), token.token_(token.ec_), std::forward<Args>(args)...);
  }
};

// A cancellation would have to be emitted where the steps run, and one at a time with them, which an executor does not
// promise. So the initiation has no executor here, even if one of its arguments has.
template <class Executor, class... Ts>
class boost::asio::async_result<boost::asio::executor_binder<ulexite::use_fiber_t, Executor>, void(Ts...)> {
  using plain = async_result<ulexite::use_fiber_t, void(Ts...)>;

 public:
  // As of use_fiber_t.
  using return_type = typename plain::return_type;
  // As of use_fiber_t.
  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, const executor_binder<ulexite::use_fiber_t, Executor>& token,
                              Args&&... args) {
    const auto start = [&](auto&& handler) {
      std::forward<Initiation>(initiation)(bind_executor(token.get_executor(), std::move(handler)),
                                           std::forward<Args>(args)...);
    };
    return plain::initiate(start, token.get());
  }
};
