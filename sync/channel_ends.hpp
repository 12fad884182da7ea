#pragma once

#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/select.hpp>

#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace ulexite {

template <class T>
class sender;
template <class T>
class receiver;
template <class T>
[[nodiscard]] std::pair<sender<T>, receiver<T>> make_channel(std::size_t capacity = 0);

namespace detail {

// Shared by the handles of one side. The last handle closes the channel.
template <class T>
struct channel_end {
  explicit channel_end(std::shared_ptr<channel<T>> of) noexcept : to(std::move(of)) {}
  channel_end(const channel_end&) = delete;
  channel_end& operator=(const channel_end&) = delete;
  ~channel_end() { to->close(); }

  const std::shared_ptr<channel<T>> to;
};

// The common part of sender and receiver.
template <class T>
class channel_handle {
 public:
  // Whether the handle has a channel. If it has none, as after a move, every other operation throws usage_error.
  [[nodiscard]] explicit operator bool() const noexcept { return end_ != nullptr; }

  // Closes the channel, as channel::close. Returns whether this call closed it.
  bool close() const { return at().close(); }
  // Whether the channel is closed. Values may still be in it.
  [[nodiscard]] bool is_closed() const { return at().is_closed(); }
  // The number of values in the buffer.
  [[nodiscard]] std::size_t size() const { return at().size(); }
  // The room in the buffer, in values; `unbounded` if it has no limit.
  [[nodiscard]] std::size_t capacity() const { return at().capacity(); }

  // Whether both belong to the same channel.
  template <class U>
  [[nodiscard]] bool same_channel(const channel_handle<U>& other) const noexcept {
    if (!end_ || !other.end_) return !end_ && !other.end_;
    return static_cast<const void*>(end_->to.get()) == static_cast<const void*>(other.end_->to.get());
  }

 protected:
  channel_handle() noexcept = default;
  explicit channel_handle(const std::shared_ptr<channel<T>>& to) : end_(std::make_shared<channel_end<T>>(to)) {}

  [[nodiscard]] channel<T>& at() const {
    if (!end_) throw usage_error("a sender or receiver without a channel was used");
    return *end_->to;
  }

 private:
  template <class>
  friend class channel_handle;
  friend struct handle_channel;

  std::shared_ptr<channel_end<T>> end_;
};

// For select.
struct handle_channel {
  template <class T>
  static channel<T>& of(const channel_handle<T>& handle) {
    return handle.at();
  }
};

}  // namespace detail

// The sending side of a channel, after crossbeam and tokio. It is copied and moved as a value. The end of the last
// sender closes the channel, and receives end once they have drained it. Several fibers and threads may use one sender,
// or copies, at the same time. The sends are those of channel.
template <class T>
class sender : public detail::channel_handle<T> {
 public:
  sender() noexcept = default;

  // Sends as channel::send. Throws channel_closed if the channel is, or becomes, closed, also by the end of the last
  // receiver.
  void send(T value) const { this->at().send(std::move(value)); }
  // Sends as channel::try_send. Never waits.
  channel_status try_send(T& value) const { return this->at().try_send(value); }
  // Send as channel::send_for and channel::send_until.
  channel_status send_for(T& value, relative_timeout time) const { return this->at().send_for(value, time); }
  channel_status send_until(T& value, absolute_timeout time) const { return this->at().send_until(value, time); }

 private:
  friend std::pair<sender<T>, receiver<T>> make_channel<T>(std::size_t capacity);
  explicit sender(const std::shared_ptr<channel<T>>& to) : detail::channel_handle<T>(to) {}
};

// The receiving side of a channel; otherwise as sender. The end of the last receiver closes the channel, and sends
// throw channel_closed. Values left in the channel are destroyed with its last handle. Each value goes to one of the
// receivers.
template <class T>
class receiver : public detail::channel_handle<T> {
 public:
  receiver() noexcept = default;

  // Receives as channel::receive: waits for the next value. nullopt when the channel is closed and drained, also by the
  // end of the last sender.
  std::optional<T> receive() const { return this->at().receive(); }
  // Receives as channel::try_receive. Never waits.
  channel_status try_receive(T& value) const { return this->at().try_receive(value); }
  // Receive as channel::receive_for and channel::receive_until.
  channel_status receive_for(T& value, relative_timeout time) const { return this->at().receive_for(value, time); }
  channel_status receive_until(T& value, absolute_timeout time) const { return this->at().receive_until(value, time); }

  // For loops: for (T value : receiver) receives until the channel is closed and drained.
  auto begin() const { return this->at().begin(); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend std::pair<sender<T>, receiver<T>> make_channel<T>(std::size_t capacity);
  explicit receiver(const std::shared_ptr<channel<T>>& from) : detail::channel_handle<T>(from) {}
};

// Makes a channel<T>(capacity), and returns its first sender and receiver. Throws as the constructor of
// channel, and std::bad_alloc.
//
//   auto [to, from] = make_channel<int>(16);
template <class T>
std::pair<sender<T>, receiver<T>> make_channel(std::size_t capacity) {
  const auto to = std::make_shared<channel<T>>(capacity);
  return {sender<T>(to), receiver<T>(to)};
}

// The cases of select for the handles, as those for a channel. The handle must keep its channel while select waits.
template <class T, class Handler = detail::no_handler>
[[nodiscard]] auto on_receive(const receiver<T>& from, Handler&& handler = {}) {
  return on_receive(detail::handle_channel::of(from), std::forward<Handler>(handler));
}
template <class T, class Value, class Handler = detail::no_handler>
  requires std::is_same_v<Value, T&> || std::is_convertible_v<Value, T>
[[nodiscard]] auto on_send(const sender<T>& to, Value&& value, Handler&& handler = {}) {
  return on_send(detail::handle_channel::of(to), std::forward<Value>(value), std::forward<Handler>(handler));
}

}  // namespace ulexite
