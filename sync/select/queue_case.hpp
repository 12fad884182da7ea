#pragma once

#include <ulexite/sync/select/select_case.hpp>

namespace ulexite::detail {

// A case at an object with one queue of waiters, whose wait ends when it is served.
class queue_case : public select_case {
 public:
  void enter(agent& self) noexcept override {
    node_ = wait_node(self);
    queue_.push(node_);
  }
  [[nodiscard]] ending leave() noexcept override {
    wait_queue::remove(node_);
    return node_.result == wait_node::outcome::served ? ending::chosen : ending::other;
  }

 protected:
  queue_case(spin_lock& guard, wait_queue& queue) noexcept : select_case(guard), queue_(queue) {}
  ~queue_case() = default;

  wait_queue& queue_;
  wait_node node_;
};

}  // namespace ulexite::detail
