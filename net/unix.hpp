#pragma once

// Unix sockets under names of their own. They are the same types: the family of the endpoint decides what a socket is,
// so whatever serves TCP or UDP serves Unix sockets too, with endpoint::local(path) ("@name" for an abstract one), or
// an endpoint::parse("unix:...") that the user gave. What is different is told at each operation.

#include <ulexite/net/tcp.hpp>
#include <ulexite/net/udp.hpp>

namespace ulexite::net {

// A Unix socket under a name of its own; see endpoint::local.
using unix_stream = tcp_stream;
using unix_listener = tcp_listener;
using unix_datagram = udp_socket;

}  // namespace ulexite::net
