#pragma once

#include <ulexite/sync/wait/wait_queue.hpp>

#include <cstdint>

namespace ulexite::detail {

// A waiter for a mutex, or for a condition variable that may move it to its mutex. A waiter that was woken and found
// the mutex taken returns to the head of the queue. Written under the mutex's guard.
struct mutex_waiter : wait_node {
  using wait_node::wait_node;

  std::int64_t since = 0;    // the time when it entered the mutex's queue
  unsigned overtaken = 0;    // the number of wakes at which another agent had taken the mutex
  bool handed_over = false;  // the waiter holds the mutex
  bool requeued = false;     // by its condition variable
};

}  // namespace ulexite::detail
