#pragma once

// Channels, after Hoare (1978) and Go.
//
// Invariants, under the lock:
//   a receiver waits  implies  the buffer is empty and no sender waits
//   a sender waits    implies  the buffer is full (or there is none) and no receiver waits
//   closed            implies  no agent waits
//
// Checked by tests/model/channel_model.cpp.

#include <ulexite/base/error.hpp>
#include <ulexite/runtime/no_yield.hpp>
#include <ulexite/runtime/wait/channel_head.hpp>
#include <ulexite/runtime/wait/current.hpp>
#include <ulexite/runtime/wait/suspend.hpp>
#include <ulexite/sync/wait/ring_buffer.hpp>
#include <ulexite/sync/wait/wait_queue.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace ulexite {

// The outcome of an operation on a channel.
enum class [[nodiscard]] channel_status {
  ok,           // done
  closed,       // closed, and for a receive also drained
  timeout,      // the time passed first
  would_block,  // it would have had to wait
};

// The capacity of a channel with sends that never wait. It is the largest.
inline constexpr std::size_t unbounded = std::numeric_limits<std::ptrdiff_t>::max();

namespace detail {
[[noreturn]] void refuse_capacity(std::size_t capacity);
template <class Derived, class T>
class channel_case_base;
}  // namespace detail

// Passes values from fiber to fiber, first in, first out. Any number of fibers and plain threads may send and receive
// at the same time. T need only be movable (for the receiving forms with a T&, and assignable); a move may be made by
// either side. T's moves, copies and destructor may run while the channel is locked. So they must not use a channel,
// and must not wait for anything of this library.
//
// Sends and receives are cancellation points, even if they do not have to wait: they throw operation_cancelled in a
// fiber that was asked to stop. A cancelled receive has taken nothing, and a cancelled send has sent nothing. Sends
// that take a T& leave the variable unchanged; the argument of send(T) is destroyed with the call. Each of them may
// yield, even if it does not wait, but not try_send.
//
// A channel may be destroyed after every call on it has returned, if there will be no other.
template <class T>
class channel : private detail::channel_head {
  static_assert(std::is_object_v<T> && !std::is_array_v<T>,
                "channel<T> carries objects: take std::monostate for void, a pointer or std::reference_wrapper for a "
                "reference, std::array for an array");
  static_assert(!std::is_const_v<T> && !std::is_volatile_v<T>, "channel<T> moves its values: T must not be const");

 public:
  // Makes a channel with a buffer for `capacity` values. 0: a send waits for its receive (rendezvous). `unbounded`: a
  // send never waits. The buffer's memory is allocated as values arrive; a value whose move may throw
  // has memory of its own. Never waits. Throws usage_error for a capacity above `unbounded`, such as -1.
  explicit channel(std::size_t capacity = 0) : channel_head{{}, capacity} {
    static_assert(std::is_move_constructible_v<T>, "channel<T> moves its values: T must be movable");
    if (capacity > unbounded) [[unlikely]]
      detail::refuse_capacity(capacity);
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  // Sends `value`; waits while the channel is full. Throws channel_closed if the channel is, or becomes, closed.
  void send(T value) {
    if (send_until_ns(value, detail::no_deadline) == channel_status::closed) throw channel_closed();
  }

  // Receives the oldest value; waits while there is none. nullopt when the channel is closed and drained.
  std::optional<T> receive() {
    std::optional<T> value;
    static_cast<void>(receive_until_ns(value, detail::no_deadline));  // `value` has the outcome
    return value;
  }

  // Send or receive without waiting. They move from `value`, or assign it, only on ok. Otherwise they return
  // would_block or closed. If the assignment throws, the received value is lost. try_send does not yield either, so a
  // std::stop_callback may call it.
  channel_status try_send(T& value) {
    const no_yield_scope here;
    return send_until_ns(value, never_wait);
  }
  channel_status try_receive(T& value) { return assign(value, never_wait); }

  // Send or receive, and wait at most for `time`, or until `time`. They move from `value`, or assign it, only on ok.
  // Otherwise they return timeout or closed. If the assignment throws, the received value is lost.
  channel_status send_for(T& value, relative_timeout time) { return send_until_ns(value, time.deadline()); }
  channel_status receive_for(T& value, relative_timeout time) { return assign(value, time.deadline()); }
  channel_status send_until(T& value, absolute_timeout time) { return send_until_ns(value, time.deadline()); }
  channel_status receive_until(T& value, absolute_timeout time) { return assign(value, time.deadline()); }

  // Closes the channel. Values in it can still be received; waiting senders get channel_closed and keep their values;
  // waiting receivers get nullopt. Returns true the first time. Never waits.
  bool close() noexcept {
    const detail::yield_point at_exit;
    detail::intrusive_list<detail::wait_node> woken;
    {
      const auto lock = guard(detail::this_caller().worker);
      if (closed_) return false;
      closed_ = true;
      for (detail::wait_queue* const queue : {&senders_, &receivers_})
        while (const detail::claimed_wait claimed = queue->claim_oldest()) {
          claimed.node->result = detail::wait_node::outcome::ended;
          if (claimed.who) woken.push_back(*claimed.node);
        }
    }
    detail::resume_all(woken);
    return true;
  }

  // Whether the channel was closed. Never waits.
  [[nodiscard]] bool is_closed() const noexcept {
    const detail::yield_point at_exit;
    const auto lock = guard(detail::this_caller().worker);
    return closed_;
  }
  // The number of values in the buffer. Never waits.
  [[nodiscard]] std::size_t size() const noexcept {
    const detail::yield_point at_exit;
    const auto lock = guard(detail::this_caller().worker);
    return buffer_.size();
  }
  // The capacity given to the constructor.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

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
      static_cast<void>(from_->receive_until_ns(value_, detail::no_deadline));
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) noexcept { return !it.value_; }

   private:
    friend channel;
    explicit iterator(channel& from) : from_(&from), value_(from.receive()) {}

    channel* from_;
    mutable std::optional<T> value_;
  };
  // For loops: for (T value : channel) receives until the channel is closed and drained. Throws as receive.
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() noexcept { return {}; }

 private:
  static constexpr std::int64_t never_wait = -1;

  template <class, class>
  friend class detail::channel_case_base;

  // Lock held. Send or receive if no wait is needed; otherwise return closed or would_block. Set `wake` to the agent to
  // resume after the lock is released, also if T's move throws.
  channel_status send_now(T& value, detail::agent*& wake) {
    if (closed_) return channel_status::closed;
    if (const detail::claimed_wait receiver = receivers_.claim_oldest()) {
      wake = receiver.who;
      serve(*receiver.node, [&] { static_cast<std::optional<T>*>(receiver.node->slot)->emplace(std::move(value)); });
      return channel_status::ok;
    }
    if (buffer_.size() >= capacity_) return channel_status::would_block;
    buffer_.push(std::move(value));
    return channel_status::ok;
  }

  channel_status receive_now(std::optional<T>& value, detail::agent*& wake) {
    if (!buffer_.empty()) {
      value.emplace(std::move(buffer_.front()));
      buffer_.pop();
      if (!senders_.empty()) refill(wake);
      return channel_status::ok;
    }
    if (const detail::claimed_wait sender = senders_.claim_oldest()) {
      wake = sender.who;
      serve(*sender.node, [&] { value.emplace(std::move(*static_cast<T*>(sender.node->slot))); });
      return channel_status::ok;
    }
    return closed_ ? channel_status::closed : channel_status::would_block;
  }

  // There is room in the buffer: takes the value of the oldest sender.
  [[gnu::noinline]] void refill(detail::agent*& wake) {
    while (const detail::claimed_wait sender = senders_.claim_oldest()) {
      if (wake) resume(*wake);  // the previous sender, whose move failed; rare, so done under the lock
      wake = sender.who;
      try {
        serve(*sender.node, [&] { buffer_.push(std::move(*static_cast<T*>(sender.node->slot))); });
        return;
      } catch (...) {  // its value could not be moved: it tries again, and the room goes to the next sender
      }
    }
  }

  // The other side has waited, and its wait is claimed: `move` moves the value. If `move` throws, the other side tries
  // again, and the caller gets the exception.
  template <class Move>
  static void serve(detail::wait_node& partner, Move&& move) {
    partner.result = detail::wait_node::outcome::again;
    move();
    partner.result = detail::wait_node::outcome::served;
  }

  channel_status send_until_ns(T& value, std::int64_t deadline) {
    detail::agent* const self = enter_alone();
    if (!self) [[unlikely]]
      return send_slow(value, deadline, nullptr);
    if (buffer_.size() >= capacity_ || buffer_.full() || closed_ || !receivers_.empty())
      return send_slow(value, deadline, &lock_.mine());
    {
      const std::lock_guard lock(lock_.mine(), std::adopt_lock);
      buffer_.push_in_room(std::move(value));
    }
    detail::spend_budget(*self);
    return channel_status::ok;
  }
  channel_status receive_until_ns(std::optional<T>& value, std::int64_t deadline) {
    detail::agent* const self = enter_alone();
    if (!self) [[unlikely]]
      return receive_slow(value, deadline, nullptr);
    if (buffer_.empty() || !senders_.empty()) return receive_slow(value, deadline, &lock_.mine());
    {
      const std::lock_guard lock(lock_.mine(), std::adopt_lock);
      value.emplace(std::move(buffer_.front()));
      buffer_.pop();
    }
    detail::spend_budget(*self);
    return channel_status::ok;
  }

  // The fast path. It needs a fiber that was not asked to stop, on the worker to which the lock is biased. Returns the
  // fiber's agent with the lock's mine() held; or null. It calls no other function, so it is a few instructions without
  // a frame.
  [[nodiscard]] detail::agent* enter_alone() noexcept {
    const detail::current_execution& here = detail::inlined_execution();
    detail::scheduler* const worker = here.scheduler;  // read once: lock_mine's fence would have it read again
    detail::agent* const self = here.agent;
    const bool entered = lock_.favours(worker) && !detail::may_have_to_stop(*self) && lock_.lock_mine(worker);
    return entered ? self : nullptr;
  }

  // All other paths. `held` is the lock if it is held already, by a fiber that was not asked to stop.
  [[gnu::noinline]] channel_status send_slow(T& value, std::int64_t deadline, detail::spin_lock* held) {
    return do_or_wait(senders_, std::addressof(value), deadline, held,
                      [&](detail::agent*& wake) { return send_now(value, wake); });
  }
  [[gnu::noinline]] channel_status receive_slow(std::optional<T>& value, std::int64_t deadline,
                                                detail::spin_lock* held) {
    return do_or_wait(receivers_, &value, deadline, held,
                      [&](detail::agent*& wake) { return receive_now(value, wake); });
  }
  channel_status assign(T& value, std::int64_t deadline) {
    std::optional<T> received;
    const channel_status status = receive_until_ns(received, deadline);
    if (status == channel_status::ok) value = std::move(*received);
    return status;
  }

  template <class Attempt>
  channel_status do_or_wait(detail::wait_queue& queue, void* slot, std::int64_t deadline, detail::spin_lock* held,
                            Attempt&& attempt) {
    for (;; held = nullptr) {
      const detail::caller self = detail::inlined_caller();  // read each time: after a wait the fiber may have another
                                                             // worker
      if (!held) {
        detail::throw_if_stopped(*self.agent);
        held = &lock_.lock(self.worker);
      }
      channel_status status;
      {
        detail::deferred_resume wake(self.worker);
        std::unique_lock lock(*held, std::adopt_lock);
        status = attempt(wake.who);
        if (status == channel_status::would_block && deadline != never_wait) {
          status = wait(self, queue, *lock.release(), slot, deadline);
          if (status == channel_status::would_block) continue;
          return status;
        }
      }
      detail::spend_budget(*self.agent);
      return status;
    }
  }

  // Called with the lock held; releases it. Queues the caller and waits. would_block means that the caller must try
  // again.
  channel_status wait(detail::caller self, detail::wait_queue& queue, detail::spin_lock& held, void* slot,
                      std::int64_t deadline) {
    detail::wait_node node(*self.agent, slot);
    queue.push(node);
    const auto kind = &queue == &senders_ ? detail::wait_kind::send : detail::wait_kind::receive;
    const auto mode = detail::waiting_for(kind, static_cast<const channel_head*>(this), detail::cancellable::yes);
    const detail::wake_reason reason = detail::suspend_and_unlock(self, held, mode, deadline);
    if (reason == detail::wake_reason::notified) [[likely]] {
      switch (node.result) {
        case detail::wait_node::outcome::served: return channel_status::ok;
        case detail::wait_node::outcome::again: return channel_status::would_block;
        default: return channel_status::closed;
      }
    }
    {
      const auto lock = guard(detail::this_caller().worker);
      detail::wait_queue::remove(node);
    }
    if (reason == detail::wake_reason::cancelled) detail::throw_cancelled();
    return channel_status::timeout;
  }

  // `worker` is the caller's.
  [[nodiscard]] std::unique_lock<detail::spin_lock> guard(detail::scheduler* worker) const noexcept {
    return std::unique_lock(lock_.lock(worker), std::adopt_lock);
  }

  // guarded by lock_
  bool closed_ = false;
  detail::ring_buffer<T> buffer_;
  detail::wait_queue senders_, receivers_;
};

}  // namespace ulexite
