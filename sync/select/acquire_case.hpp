#pragma once

#include <ulexite/sync/auto_reset_event.hpp>
#include <ulexite/sync/select/queue_case.hpp>
#include <ulexite/sync/semaphore.hpp>

namespace ulexite::detail {

// Takes a permit. When the case leaves the queue, no other waiter must be served, because there is no permit while it
// is the oldest waiter.
class acquire_case : public queue_case {
 public:
  template <std::ptrdiff_t Max>
  explicit acquire_case(counting_semaphore<Max>& from) noexcept : acquire_case(from.core_) {}
  explicit acquire_case(auto_reset_event& from) noexcept : acquire_case(from.core_) {}

  [[nodiscard]] bool attempt(agent*&) final { return from_.take(1); }
  void enter(agent& self) noexcept final {
    node_ = wait_node(self);
    from_.add_waiter(node_, 1);
  }

 protected:
  ~acquire_case() = default;

 private:
  explicit acquire_case(semaphore_core& from) noexcept : queue_case(from.guard_, from.queue_), from_(from) {}

  semaphore_core& from_;
};

}  // namespace ulexite::detail
