#pragma once

#include <ulexite/base/intrusive_list.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ulexite::detail {

// A wait for a file descriptor or a time. This is all that the loop knows of it; waiters derive from it. While armed it
// belongs to its source (a timer heap, an fd_source). The owner may take it back at any time with cancel or disarm.
// After that the loop never touches it.
struct event {
  event* next = nullptr;  // link in the list of ready events

  // Called once, when the source fires, under the source's lock. True: the claim succeeded, and the loop returns the
  // event in its list of ready events. False: another claimer (a value, a cancellation) was first; the loop drops the
  // event. Must be short, and must not call into the loop.
  bool (*claim)(event&) noexcept = nullptr;

  void* waiter = nullptr;  // for the owner only
};

using event_list = intrusive_queue<event>;

// An event that fires at a time. Never early.
struct timer_event : event {
  static constexpr std::uint32_t idle = UINT32_MAX;

  std::int64_t deadline = 0;      // steady clock, nanoseconds
  std::uint32_t position = idle;  // in its heap; idle: in none. Guarded by the heap's lock
  std::uint32_t shard = 0;        // the number of its heap
};

enum class direction : std::uint8_t { read, write };

}  // namespace ulexite::detail
