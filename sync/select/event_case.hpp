#pragma once

#include <ulexite/sync/event.hpp>
#include <ulexite/sync/select/select_case.hpp>

namespace ulexite::detail {

class event_case : public select_case {
 public:
  explicit event_case(ulexite::event& of) noexcept : select_case(of.guard_), of_(of) {}

  [[nodiscard]] bool attempt(agent*&) final { return of_.set_or_marked(); }
  void enter(agent& self) noexcept final {
    node_ = wait_node(self);
    of_.queue_.push(node_);
  }
  [[nodiscard]] ending leave() noexcept final {
    wait_queue::remove(node_);
    return node_.result == wait_node::outcome::served ? ending::chosen : ending::other;
  }

 protected:
  ~event_case() = default;

 private:
  ulexite::event& of_;
  wait_node node_;
};

}  // namespace ulexite::detail
