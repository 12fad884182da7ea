#pragma once

#include <ulexite/sync/event.hpp>
#include <ulexite/sync/select/queue_case.hpp>

namespace ulexite::detail {

class event_case : public queue_case {
 public:
  explicit event_case(ulexite::event& of) noexcept : queue_case(of.guard_, of.queue_), of_(of) {}

  [[nodiscard]] bool attempt(agent*&) final { return of_.set_or_marked(); }

 protected:
  ~event_case() = default;

 private:
  ulexite::event& of_;
};

}  // namespace ulexite::detail
