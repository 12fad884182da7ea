#pragma once

#include <chrono>
#include <cstddef>

namespace presence {

// The limits for clients.
struct limits {
  std::size_t line = 512;          // bytes of a command
  std::size_t outbox = 64 * 1024;  // bytes that a client may leave unread before it is dropped
  std::size_t watched = 1000;      // names that one client may watch
  std::chrono::nanoseconds patience = std::chrono::seconds(10);  // for a client to take what was sent
};

}  // namespace presence
