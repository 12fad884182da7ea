#pragma once

// Unix sockets under names of their own. They are the same types: the family of the endpoint decides what a socket is,
// so whatever serves TCP or UDP serves Unix sockets too, with endpoint::local(path) ("@name" for an abstract one), or
// an endpoint::parse("unix:...") that the user gave. What is different is told at each operation.

#include <ulexite/net/tcp.hpp>
#include <ulexite/net/udp.hpp>

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

namespace ulexite::net {

// A Unix socket under a name of its own; see endpoint::local.
using unix_stream = tcp_stream;
using unix_listener = tcp_listener;
using unix_datagram = udp_socket;

// Who is at the other end of a Unix socket: the process that connected or listened, as it was then (SO_PEERCRED).
struct peer_credentials {
  pid_t process;  // its number
  uid_t user;     // effective
  gid_t group;    // effective
};
// Throws std::system_error, with not_supported if it is no Unix socket. Never waits. Any thread.
[[nodiscard]] peer_credentials credentials_of_peer(const unix_stream& stream);

// Writes all of `data`, at least one byte, and passes duplicates of `descriptors` with its first byte (SCM_RIGHTS). At
// most 253. The caller keeps its own; they may be closed when this returns. Waits like write, and fails like it: with
// an error before the first byte was sent, the descriptors were not passed. Throws std::invalid_argument for no data or
// too many descriptors.
void send_descriptors(unix_stream& to, std::string_view data, std::span<const int> descriptors);
void send_descriptors(unix_stream& to, std::string_view data, std::span<const int> descriptors, std::error_code& error);

// Reads as read_some, and appends the descriptors that came with the data, close-on-exec, to `descriptors`; they are
// the caller's. A read ends where other descriptors follow, so those of two messages never mix. A plain read_some drops
// descriptors. If the process has no room for all of them, the system drops the rest, and the error is
// too_many_files_open; the data that was read is counted all the same.
std::size_t receive_descriptors(unix_stream& from, void* data, std::size_t size, std::vector<int>& descriptors);
std::size_t receive_descriptors(unix_stream& from, void* data, std::size_t size, std::vector<int>& descriptors,
                                std::error_code& error);

}  // namespace ulexite::net
