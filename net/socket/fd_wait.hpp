#pragma once

// How a fiber waits for an edge of a descriptor's source.

#include <ulexite/base/kernel.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <cstdint>
#include <system_error>

namespace ulexite::detail {

class runtime_state;
struct event;
enum class direction : std::uint8_t;

// The runtime of the calling worker, or null on a plain thread.
runtime_state* calling_runtime() noexcept;

// One direction of one source, as a wait needs it: see event_loop's functions of these names.
class fd_arm {
 public:
  virtual bool arm(event& event) noexcept = 0;
  virtual void disarm(event& event) noexcept = 0;

 protected:
  ~fd_arm() = default;
};

// How a wait for the descriptor, or for a turn to use it, appears in reports.
wait_mode waiting_for_fd(int fd, direction towards) noexcept;

// Suspends the calling fiber until an edge of `fd` arrives, or `deadline` has passed. Reports a cancellation as
// errc::cancelled, and a passed deadline as std::errc::timed_out. No error means that the caller must try again.
std::error_code wait_for_edge(fd_arm& side, int fd, direction direction, std::int64_t deadline) noexcept;

// Waits for a descriptor without its own source. A fiber opens one for the time of the wait; a plain thread
// blocks in poll(2). Errors are those of wait_for_edge, of poll and of epoll.
std::error_code wait_without_source(int fd, direction direction, std::int64_t deadline) noexcept;

}  // namespace ulexite::detail
