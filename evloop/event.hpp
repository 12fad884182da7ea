#pragma once

#include <ulexite/base/intrusive_list.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

// Something that waits for a file descriptor or a time. The loop knows no more of it than this: whoever waits derives
// from it. While armed it belongs to its source (a timer heap, an fd_source); the owner may take it back at any time
// with cancel or disarm, after which the loop never touches it again.
struct event {
  event* next = nullptr;  // link in the list of ready events

  // Called once, when the source fires, under the source's lock. True: the event is won, and the loop hands it out in
  // its list of ready events. False: somebody else (a value, a cancellation) was first; the loop forgets it. Must be
  // short, must not call into the loop.
  bool (*claim)(event&) noexcept = nullptr;

  void* waiter = nullptr;  // whose event it is: the owner's own affair
};

using event_list = intrusive_queue<event>;

// An event that fires at a time. Never early.
struct timer_event : event {
  static constexpr std::uint32_t idle = UINT32_MAX;

  std::int64_t deadline = 0;      // steady clock, nanoseconds
  std::uint32_t position = idle;  // where in its heap; idle: in none. Guarded by the heap's lock
  std::uint32_t shard = 0;        // which heap
};

enum class direction : std::uint8_t { read, write };

}  // namespace ulexite::detail
