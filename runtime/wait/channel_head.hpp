#pragma once

#include <ulexite/base/biased_lock.hpp>

#include <atomic>
#include <cstddef>

namespace ulexite::detail {

extern std::atomic<std::size_t> large_channel_bytes;  // in channels' blocks of more than 64 KiB, in the whole process

// The first members of every channel, whatever its values are. A report about a fiber that waits to send reads the
// capacity. The fiber's call has not returned, so the channel is there.
struct channel_head {
  mutable biased_lock lock_;  // guards the channel's other members
  const std::size_t capacity_;
};

}  // namespace ulexite::detail
