#pragma once

// What waits for descriptors have in common.

#include <ulexite/base/kernel.hpp>
#include <ulexite/runtime/wait/wait_kind.hpp>

#include <cstdint>
#include <system_error>

namespace ulexite::detail {

class runtime_state;
enum class direction : std::uint8_t;

// The runtime of the calling worker, or null on a plain thread.
runtime_state* calling_runtime() noexcept;

// How a wait for the descriptor, or for a turn to use it, appears in reports.
wait_mode waiting_for_fd(int fd, direction side) noexcept;

// Waits for a descriptor without its own source, until it is ready or `deadline` has passed. A fiber opens one for the
// time of the wait; a plain thread blocks in poll(2). Reports a cancellation as errc::cancelled, and a passed deadline
// as std::errc::timed_out; other errors are those of poll and of epoll.
std::error_code wait_without_source(int fd, direction direction, std::int64_t deadline) noexcept;

}  // namespace ulexite::detail
