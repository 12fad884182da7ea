#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// Prepares libevent for this process, once: locks, thread ids, messages. Throws std::system_error if libevent refuses.
// These settings are global to the process. They replace the log callback of other users of libevent in it, and do not
// affect them otherwise.
void set_up_libevent();

// Lets libevent take the thread for the one that turns the loop.
//
// Without this, an event_add or event_del while another thread is blocked in the loop writes libevent's notification
// descriptor. This wakes the blocked thread (12 us), which epoll does not need. event_del would also wait for the
// event's running callback. In this scope it does not wait, so the sources' memory is kept until no callback can run
// (see fd_pool).
class loop_thread_scope {
 public:
  // `mute` also drops libevent's messages, because the caller reports a failure in another way.
  explicit loop_thread_scope(bool mute = false) noexcept;
  ~loop_thread_scope();
  loop_thread_scope(const loop_thread_scope&) = delete;
  loop_thread_scope& operator=(const loop_thread_scope&) = delete;
};

}  // namespace ulexite::detail
