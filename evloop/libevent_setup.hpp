#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// Prepares libevent for this process, once: locks, thread ids, messages. Throws std::system_error if libevent refuses.
// These settings are global to the process. They replace the log callback of other users of libevent in it, and do not
// affect them otherwise.
void set_up_libevent();

// Makes the thread quiet for a scope: libevent takes it for the thread that turns the loop.
//
// Without this, an event_add or event_del while another thread is blocked in the loop writes libevent's notification
// descriptor. This wakes the blocked thread (12 us), which epoll does not need. event_del would also wait for the
// event's running callback. In a quiet scope it does not wait, so the sources' memory is kept until no callback can run
// (see fd_pool).
class quiet_scope {
 public:
  // `mute` also drops libevent's messages, because the caller reports a failure in another way.
  explicit quiet_scope(bool mute = false) noexcept;
  ~quiet_scope();
  quiet_scope(const quiet_scope&) = delete;
  quiet_scope& operator=(const quiet_scope&) = delete;
};

}  // namespace ulexite::detail
