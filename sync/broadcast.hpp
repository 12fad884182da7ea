#pragma once

// One sender's values to many receivers, after tokio's broadcast.

#include <ulexite/base/error.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/select/broadcast_case.hpp>
#include <ulexite/sync/select/broadcast_core.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace ulexite {

template <class T>
class broadcast;

namespace detail {

// The common part of the receivers of a broadcast and of a watch.
template <class T>
class broadcast_reader {
  std::shared_ptr<broadcast_core> from_;  // first, because at_ is made from it; null after a move

 public:
  // Receives a copy of the next value; waits until there is one. nullopt when the source is closed and all values are
  // read. A cancellation point: if it throws operation_cancelled, it has read nothing. Throws exceptions of the copy;
  // then the value is read.
  std::optional<T> receive() {
    std::optional<T> value;
    static_cast<void>(read(detail::no_deadline, [&](const T& next) { value.emplace(next); }));
    return value;
  }
  // Assigns the next value, or returns would_block or closed. Never waits.
  channel_status try_receive(T& value) {
    return read(broadcast_core::never_wait, [&](const T& next) { value = next; });
  }
  // Assigns the next value. Waits at most for `time`, or until `time`; otherwise returns timeout or closed.
  channel_status receive_for(T& value, relative_timeout time) {
    return read(time.deadline(), [&](const T& next) { value = next; });
  }
  channel_status receive_until(T& value, absolute_timeout time) {
    return read(time.deadline(), [&](const T& next) { value = next; });
  }

 protected:
  explicit broadcast_reader(std::shared_ptr<broadcast_core> from) noexcept
      : from_(std::move(from)), at_(from_->subscribe()) {}

  [[nodiscard]] broadcast_core& from() const {
    if (!from_) throw usage_error("a receiver that was moved from was used");
    return *from_;
  }

  broadcast_core::reader at_;

 private:
  friend struct broadcast_access;

  template <class Take>
  channel_status read(std::int64_t deadline, Take&& take) {
    broadcast_core::value next;
    const channel_status status = from().read(at_, next, deadline);
    if (status == channel_status::ok) take(*static_cast<const T*>(next.get()));
    return status;
  }
};

// For select.
struct broadcast_access {
  template <class T>
  static broadcast_core& core(broadcast_reader<T>& of) {
    return of.from();
  }
  template <class T>
  static broadcast_core::reader& reader(broadcast_reader<T>& of) {
    return of.at_;
  }
};

template <class T, class Handler>
class read_case final : public broadcast_case {
 public:
  read_case(broadcast_reader<T>& from, Handler&& handler)
      : broadcast_case(broadcast_access::core(from), broadcast_access::reader(from)),
        handler_(std::forward<Handler>(handler)) {}
  // The value, or nullopt at the end.
  [[nodiscard]] std::optional<T> take() const {
    std::optional<T> next;
    if (value) next.emplace(*static_cast<const T*>(value.get()));
    return next;
  }
  void run() { call_function(std::forward<Handler>(handler_), take()); }

 private:
  Handler handler_;
};

}  // namespace detail

// Receives every value that is sent after broadcast::subscribe has made it, in order. One fiber or thread may use it at
// a time. A copy continues at the original's position. After a move from it, reads throw usage_error.
template <class T>
class broadcast_receiver : public detail::broadcast_reader<T> {
 public:
  // The number of missed values. A value is missed when the broadcast drops it before this receiver has read it. The
  // next receive continues with the oldest value that the broadcast has.
  [[nodiscard]] std::uint64_t missed() const noexcept { return this->at_.missed; }

  // An input iterator over the received values.
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    T& operator*() const noexcept { return *value_; }
    T* operator->() const noexcept { return std::addressof(*value_); }
    iterator& operator++() {
      value_.reset();
      if (auto next = from_->receive()) value_.emplace(std::move(*next));
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) noexcept { return !it.value_; }

   private:
    friend broadcast_receiver;
    explicit iterator(broadcast_receiver& from) : from_(&from), value_(from.receive()) {}

    broadcast_receiver* from_;
    mutable std::optional<T> value_;
  };
  // For loops: for (T value : receiver) receives until the broadcast is closed and all values are read.
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() noexcept { return {}; }

 private:
  friend broadcast<T>;
  explicit broadcast_receiver(std::shared_ptr<detail::broadcast_core> from) noexcept
      : detail::broadcast_reader<T>(std::move(from)) {}
};

// Sends each value to all receivers. A send never waits: a receiver that is too slow misses the oldest values, and
// knows how many. Any number of fibers and plain threads may send and subscribe at the same time. The receivers may
// outlive it. T must be copyable; for large values use a std::shared_ptr<const X>.
template <class T>
class broadcast {
  static_assert(std::is_copy_constructible_v<T>, "broadcast<T> gives each receiver a copy: T must be copyable");

 public:
  // Keeps the last `capacity` values for receivers that have not read them. Throws usage_error for 0, std::bad_alloc.
  explicit broadcast(std::size_t capacity) : core_(std::make_shared<detail::broadcast_core>(capacity)) {}
  broadcast(const broadcast&) = delete;
  broadcast& operator=(const broadcast&) = delete;
  // Closes the broadcast.
  ~broadcast() { core_->close(); }

  // Sends to all receivers; if there are none, the value is lost. Never waits. Throws channel_closed, and
  // std::bad_alloc.
  void send(T value) {
    if (!core_->put(std::make_shared<const T>(std::move(value)))) throw channel_closed();
  }
  // Makes a receiver of the values that are sent from now on. Never waits.
  [[nodiscard]] broadcast_receiver<T> subscribe() const { return broadcast_receiver<T>(core_); }

  // Closes the broadcast: receivers get their unread values, then nullopt. Returns true the first time. Never waits.
  bool close() noexcept { return core_->close(); }
  // Whether it was closed. Never waits.
  [[nodiscard]] bool is_closed() const noexcept { return core_->is_closed(); }

 private:
  std::shared_ptr<detail::broadcast_core> core_;
};

// A case of select that receives from a broadcast_receiver or a watch_receiver: handler(std::optional<T>&&), with
// nullopt at the end.
template <class T, class Handler = detail::no_handler>
[[nodiscard]] auto on_receive(detail::broadcast_reader<T>& from, Handler&& handler = {}) {
  static_assert(std::is_invocable_v<Handler, std::optional<T>>, "the handler of on_receive takes a std::optional<T>");
  return detail::read_case<T, Handler>(from, std::forward<Handler>(handler));
}

}  // namespace ulexite
