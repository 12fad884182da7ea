#pragma once

#include <ulexite/base/error.hpp>
#include <ulexite/sync/broadcast.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace ulexite {

template <class T>
class watch;

// Reads the newest value of a watch; made by watch::subscribe. Its receive() waits for a value newer than its last
// result, and skips older values. One fiber or thread may use it at a time. After a move from it, reads throw
// usage_error.
template <class T>
class watch_receiver : public detail::broadcast_reader<T> {
 public:
  // Returns a copy of the newest value, which counts as received. Never waits. Throws exceptions of the copy.
  [[nodiscard]] T get() { return *static_cast<const T*>(this->from().last(&this->at_).get()); }
  // Whether there is a value newer than the last result of receive(). Never waits.
  [[nodiscard]] bool has_changed() const { return this->from().has_next(this->at_); }

 private:
  friend watch<T>;
  explicit watch_receiver(std::shared_ptr<detail::broadcast_core> from) noexcept
      : detail::broadcast_reader<T>(std::move(from)) {}
};

// A value that notifies its receivers when it changes, after tokio's watch. Use it for settings and states, where only
// the newest value counts. Any number of fibers and plain threads may use it at the same time. The receivers may
// outlive it.
template <class T>
class watch {
  static_assert(std::is_copy_constructible_v<T>, "watch<T> gives each receiver a copy: T must be copyable");

 public:
  // Throws std::bad_alloc.
  explicit watch(T initial) : core_(std::make_shared<detail::broadcast_core>(1)) { set(std::move(initial)); }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;
  // Closes the watch.
  ~watch() { core_->close(); }

  // Replaces the value. Never waits. Throws channel_closed after close(), std::bad_alloc.
  void set(T value) {
    if (!core_->put(std::make_shared<const T>(std::move(value)))) throw channel_closed();
  }
  // Returns a copy of the value. Never waits. Throws exceptions of the copy.
  [[nodiscard]] T get() const { return *static_cast<const T*>(core_->last().get()); }
  // Makes a receiver for which the present value is not new. Never waits.
  [[nodiscard]] watch_receiver<T> subscribe() const { return watch_receiver<T>(core_); }

  // Closes the watch: receivers get their unread value, then nullopt. Returns true the first time. Never waits.
  bool close() noexcept { return core_->close(); }
  // Whether it was closed. Never waits.
  [[nodiscard]] bool is_closed() const noexcept { return core_->is_closed(); }

 private:
  std::shared_ptr<detail::broadcast_core> core_;
};

}  // namespace ulexite
