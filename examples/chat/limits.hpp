#pragma once

#include <chrono>
#include <cstddef>

namespace chat {

// The limits of members and of the server.
struct limits {
  std::size_t room_members = 100;
  std::size_t message_size = 4096;  // bytes of a message as it arrives, with its JSON
  std::size_t messages_a_second = 20;
  std::chrono::seconds idle{60};  // a member that sends nothing and answers no ping for this time has left
};

}  // namespace chat
