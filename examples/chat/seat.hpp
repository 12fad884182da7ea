#pragma once

#include <string>
#include <string_view>

namespace chat {

// What a client asks for by /ws?room=R&name=N.
struct seat {
  std::string room, name;
};

// Reads it from the target of the request. Throws std::invalid_argument saying what is wrong, in plain ASCII.
seat parse_seat(std::string_view target);

}  // namespace chat
