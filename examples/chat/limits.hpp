#pragma once

#include <chrono>
#include <cstddef>

namespace chat {

// What a member may do, and what the server does for it.
struct limits {
  std::size_t room_members = 100;
  std::size_t message_size = 4096;  // bytes of a message as it comes, JSON and all
  std::size_t messages_a_second = 20;
  std::chrono::seconds idle{60};  // a member that sends nothing and answers no ping for so long is gone
};

}  // namespace chat
