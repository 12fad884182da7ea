#pragma once

#include <ulexite/sync/select/broadcast_core.hpp>
#include <ulexite/sync/select/select_case.hpp>

namespace ulexite::detail {

// Reads the next value of a broadcast. A new value ends the wait, and the select starts again to read it.
class broadcast_case : public select_case {
 public:
  broadcast_case(broadcast_core& from, broadcast_core::reader& who) noexcept
      : select_case(from.guard_), from_(from), who_(who) {}

  [[nodiscard]] bool attempt(agent*&) final { return from_.read_now(who_, value) != channel_status::would_block; }
  void enter(agent& self) noexcept final {
    node_ = wait_node(self);
    from_.queue_.push(node_);
  }
  [[nodiscard]] ending leave() noexcept final {
    wait_queue::remove(node_);
    return node_.result == wait_node::outcome::served ? ending::again : ending::other;
  }

 protected:
  ~broadcast_case() = default;

  broadcast_core::value value;  // the value read; null at the end

 private:
  broadcast_core& from_;
  broadcast_core::reader& who_;
  wait_node node_;
};

}  // namespace ulexite::detail
