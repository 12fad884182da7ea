#pragma once

#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/select/select_case.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace ulexite::detail {

// The common part of the two cases of a channel. `Derived` has the queue and the operation.
template <class Derived, class T>
class channel_case_base : public select_case {
 public:
  explicit channel_case_base(channel<T>& at) noexcept : select_case(at.lock_), at_(at) {}

  [[nodiscard]] bool attempt(agent*& wake) final {
    const channel_status status = static_cast<Derived&>(*this).operate(wake);
    closed_ = status == channel_status::closed;
    return status != channel_status::would_block;
  }

  void enter(agent& self) noexcept final {
    node_ = wait_node(self, static_cast<Derived&>(*this).slot());
    static_cast<Derived&>(*this).queue().push(node_);
  }

  [[nodiscard]] ending leave() noexcept final {
    wait_queue::remove(node_);
    switch (node_.result) {
      case wait_node::outcome::pending: return ending::other;
      case wait_node::outcome::again: return ending::again;
      case wait_node::outcome::ended: closed_ = true; break;
      case wait_node::outcome::served: closed_ = false; break;
    }
    return ending::chosen;
  }

  // Whether the case was chosen because the channel is closed.
  [[nodiscard]] bool closed() const noexcept { return closed_; }

 protected:
  ~channel_case_base() = default;

  channel_status send_now(T& value, agent*& wake) { return at_.send_now(value, wake); }
  channel_status receive_now(std::optional<T>& value, agent*& wake) { return at_.receive_now(value, wake); }
  wait_queue& senders() noexcept { return at_.senders_; }
  wait_queue& receivers() noexcept { return at_.receivers_; }

 private:
  channel<T>& at_;
  wait_node node_;
  bool closed_ = false;
};

template <class T>
class receive_case_base : public channel_case_base<receive_case_base<T>, T> {
 public:
  using receive_case_base::channel_case_base::channel_case_base;

  std::optional<T> value;  // the received value

  channel_status operate(agent*& wake) { return this->receive_now(value, wake); }
  void* slot() noexcept { return &value; }
  wait_queue& queue() noexcept { return this->receivers(); }

 protected:
  ~receive_case_base() = default;
};

template <class T>
class send_case_base : public channel_case_base<send_case_base<T>, T> {
 public:
  send_case_base(channel<T>& at, T& value) noexcept : send_case_base::channel_case_base(at), value_(value) {}

  channel_status operate(agent*& wake) { return this->send_now(value_, wake); }
  void* slot() noexcept { return std::addressof(value_); }
  wait_queue& queue() noexcept { return this->senders(); }

 protected:
  ~send_case_base() = default;

 private:
  T& value_;
};

}  // namespace ulexite::detail
