#pragma once

#include <ulexite/runtime/task/task.hpp>

namespace ulexite::detail {

// Connects the event loop's events with fibers. A waiter keeps its event in its frame. These are templates, because
// this layer's headers do not see the loop's.

// Makes `event`, an evloop event, end a wait of `waiter` with `Reason`.
template <wake_reason Reason, class Event>
void tie(Event& event, agent& waiter) noexcept {
  event.waiter = &waiter;
  event.claim = [](auto& fired) noexcept {
    return static_cast<agent*>(fired.waiter)->word.claim(Reason) == claim_result::won;
  };
}

// The fiber that waited for a ready event.
template <class Event>
task& task_of(Event& ready) noexcept {
  return static_cast<agent*>(ready.waiter)->fiber();
}

}  // namespace ulexite::detail
