#pragma once

#include <ulexite/evloop/event.hpp>
#include <ulexite/runtime/task.hpp>

namespace ulexite::detail {

// How the event loop's events are tied to fibers: whoever waits for one keeps it in its frame.

// Makes `event` end a wait of `waiter` with `Reason`.
template <wake_reason Reason>
void tie(event& event, agent& waiter) noexcept {
  event.waiter = &waiter;
  event.claim = [](detail::event& fired) noexcept {
    return static_cast<agent*>(fired.waiter)->word.claim(Reason) == claim_result::won;
  };
}

// The fiber whose wait a ready event ended.
inline task& task_of(event& ready) noexcept { return static_cast<agent*>(ready.waiter)->fiber(); }

}  // namespace ulexite::detail
