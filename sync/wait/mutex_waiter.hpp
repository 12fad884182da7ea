#pragma once

#include <ulexite/sync/wait/wait_queue.hpp>

#include <cstdint>

namespace ulexite::detail {

// One who waits for a mutex, or for a condition variable that may send it on to its mutex. One that was woken and
// passed over comes back to the head of the queue. Written under the mutex's guard.
struct mutex_waiter : wait_node {
  using wait_node::wait_node;

  std::int64_t since = 0;      // when it came to the mutex's queue
  unsigned passed_over = 0;    // how often it was woken, and found the mutex taken by another
  bool handed_over = false;    // the mutex is its own
  bool sent_to_mutex = false;  // by its condition variable
};

}  // namespace ulexite::detail
