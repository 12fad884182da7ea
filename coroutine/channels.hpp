#pragma once

// The sends and receives of channels for coroutines. The rule of names is in waits.hpp.

#include <ulexite/coroutine/case_operation.hpp>
#include <ulexite/sync/broadcast.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/channel_ends.hpp>
#include <ulexite/sync/watch.hpp>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace ulexite {
namespace detail {

template <class T>
class receive_operation final : public case_operation<receive_case<T, no_handler>> {
 public:
  explicit receive_operation(channel<T>& from)
      : case_operation<receive_case<T, no_handler>>(waiting_for(wait_kind::receive, &from, cancellable::yes),
                                                    [&] { return receive_case<T, no_handler>(from, no_handler()); }) {}
  std::optional<T> result() {
    static_cast<void>(this->done());
    return std::move(this->case_.value);
  }
};

template <class T>
class read_operation final : public case_operation<read_case<T, no_handler>> {
 public:
  explicit read_operation(broadcast_reader<T>& from)
      : case_operation<read_case<T, no_handler>>(
            waiting_for(wait_kind::broadcast, &broadcast_access::core(from), cancellable::yes),
            [&] { return read_case<T, no_handler>(from, no_handler()); }) {}
  std::optional<T> result() {
    static_cast<void>(this->done());
    return this->case_.take();
  }
};

// A receive or a send that may end without its value.
template <class T, class Case>
class timed_channel_operation final : public case_operation<Case> {
 public:
  timed_channel_operation(wait_kind kind, channel<T>& at, T& value, std::int64_t until)
      : case_operation<Case>(
            waiting_for(kind, &at, cancellable::yes),
            [&] {
              if constexpr (std::is_constructible_v<Case, channel<T>&, no_handler>) {
                return Case(at, no_handler());
              } else {
                return Case(at, value, no_handler());
              }
            },
            until),
        value_(value) {}
  channel_status result() {
    if (!this->done()) return channel_status::timeout;
    if (this->case_.closed()) return channel_status::closed;
    if constexpr (requires { this->case_.value; }) value_ = std::move(*this->case_.value);
    return channel_status::ok;
  }

 private:
  T& value_;
};

template <class T>
class send_operation final : public case_operation<send_case<T, T, no_handler>> {
 public:
  send_operation(channel<T>& to, T&& value)
      : case_operation<send_case<T, T, no_handler>>(waiting_for(wait_kind::send, &to, cancellable::yes), [&] {
          return send_case<T, T, no_handler>(to, std::move(value), no_handler());
        }) {}
  void result() {
    static_cast<void>(this->done());
    this->case_.run();
  }
};

}  // namespace detail

// Receives as channel::receive, or from a receiver, a broadcast_receiver or a watch_receiver: std::optional<T>.
template <class T>
[[nodiscard]] auto co_receive(channel<T>& from) {
  return detail::receive_operation<T>(from);
}
template <class T>
[[nodiscard]] auto co_receive(const receiver<T>& from) {
  return detail::receive_operation<T>(detail::handle_channel::of(from));
}
template <class T>
[[nodiscard]] auto co_receive(detail::broadcast_reader<T>& from) {
  return detail::read_operation<T>(from);
}
// Assigns as channel::receive_for and receive_until, and results in a channel_status.
template <class T>
[[nodiscard]] auto co_receive_for(channel<T>& from, T& value, relative_timeout time) {
  return detail::timed_channel_operation<T, detail::receive_case<T, detail::no_handler>>(detail::wait_kind::receive,
                                                                                         from, value, time.deadline());
}
template <class T>
[[nodiscard]] auto co_receive_until(channel<T>& from, T& value, absolute_timeout time) {
  return detail::timed_channel_operation<T, detail::receive_case<T, detail::no_handler>>(detail::wait_kind::receive,
                                                                                         from, value, time.deadline());
}

// Sends as channel::send, or by a sender. Throws channel_closed.
template <class T>
[[nodiscard]] auto co_send(channel<T>& to, std::type_identity_t<T> value) {
  return detail::send_operation<T>(to, std::move(value));
}
template <class T>
[[nodiscard]] auto co_send(const sender<T>& to, std::type_identity_t<T> value) {
  return detail::send_operation<T>(detail::handle_channel::of(to), std::move(value));
}
// Sends as channel::send_for and send_until: `value` is moved from only by ok, the channel_status that results.
template <class T>
[[nodiscard]] auto co_send_for(channel<T>& to, T& value, relative_timeout time) {
  return detail::timed_channel_operation<T, detail::send_case<T, T&, detail::no_handler>>(detail::wait_kind::send, to,
                                                                                          value, time.deadline());
}
template <class T>
[[nodiscard]] auto co_send_until(channel<T>& to, T& value, absolute_timeout time) {
  return detail::timed_channel_operation<T, detail::send_case<T, T&, detail::no_handler>>(detail::wait_kind::send, to,
                                                                                          value, time.deadline());
}

}  // namespace ulexite
