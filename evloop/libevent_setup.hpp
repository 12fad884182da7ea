#pragma once

#include <ulexite/base/standard.hpp>

namespace ulexite::detail {

// Prepares libevent for this process, once: locks, thread ids, messages. Throws std::system_error if it refuses.
// All of it is global to the process, and neutral for other users of libevent in it.
void set_up_libevent();

// While one lives, its thread is quiet: libevent takes it for the thread that turns the loop.
//
// Without this, an event_add or event_del while another thread is blocked in the loop writes libevent's notification
// descriptor and wakes that thread (12 us), which epoll has no need of. And event_del would wait for the event's
// running callback; that it does not is the price, and the sources' memory is kept until no callback can run (see
// fd_pool).
class quiet_scope {
 public:
  // `mute`: also drops libevent's messages, for a call whose failure is reported otherwise.
  explicit quiet_scope(bool mute = false) noexcept;
  ~quiet_scope();
  quiet_scope(const quiet_scope&) = delete;
  quiet_scope& operator=(const quiet_scope&) = delete;
};

}  // namespace ulexite::detail
