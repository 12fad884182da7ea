#pragma once

#include <string>
#include <string_view>

namespace chat {

// The room and the name that a client requests by /ws?room=R&name=N.
struct seat {
  std::string room, name;
};

// Reads it from the target of the request. Throws std::invalid_argument that describes the error in plain ASCII.
seat parse_seat(std::string_view target);

}  // namespace chat
