#pragma once

// Sockets that were opened for the process before it was started, as systemd does (socket activation). The name is not
// that of systemd's sd_listen_fds, because they need not listen: datagram sockets are passed too.
//
//   const std::vector<int> given = net::inherited_descriptors();
//   auto listener = given.empty() ? net::tcp_listener(at) : net::tcp_listener::adopt(given.front());

#include <ulexite/base/standard.hpp>

#include <vector>

namespace ulexite::net {

// The descriptors that systemd, or a program with the same protocol, passes to this process (LISTEN_PID and LISTEN_FDS
// in the environment). They are the sockets of the unit, in the order of its lines. Empty if there are none, or if they
// are another process's. They are the caller's: give each to the adopt of its type. They are made close-on-exec. Reads
// the environment, and leaves it as it is; so call it once, because every call returns the same numbers. Any thread.
// Never waits. Throws std::system_error if one of them is not open.
[[nodiscard]] std::vector<int> inherited_descriptors();

}  // namespace ulexite::net
