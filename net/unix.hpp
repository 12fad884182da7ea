#pragma once

// Names for Unix sockets, and functions that only they have. The types are those of TCP and UDP, because the family of
// the endpoint decides the kind of a socket. So code that serves TCP or UDP also serves Unix sockets, given
// endpoint::local(path) ("@name" for an abstract one) or endpoint::parse("unix:..."). Each operation names its
// differences for Unix sockets.

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

// A Unix socket under its own name; see endpoint::local.
using unix_stream = tcp_stream;
using unix_listener = tcp_listener;
using unix_datagram = udp_socket;

// The peer process of a Unix socket, as it was when it connected or listened (SO_PEERCRED).
struct peer_credentials {
  pid_t process = 0;  // its number
  uid_t user = 0;     // effective
  gid_t group = 0;    // effective
};
// Returns the peer process of `stream`. Throws std::system_error, with not_supported if it is not a Unix socket. Never
// waits. Any thread.
[[nodiscard]] peer_credentials credentials_of_peer(const unix_stream& stream);

// Writes all of `data`, and passes duplicates of `descriptors` with its first byte (SCM_RIGHTS). `data` has at least
// one byte; there are at most 253 descriptors. The caller keeps its descriptors, and may close them when this returns.
// Waits and fails as write. If an error occurs before the first byte was sent, no descriptor was passed. Errors:
// also not_supported for descriptors over TCP. Throws std::invalid_argument for no data or too many descriptors.
void send_descriptors(unix_stream& to, std::string_view data, std::span<const int> descriptors);
void send_descriptors(unix_stream& to, std::string_view data, std::span<const int> descriptors, std::error_code& error);

// Reads as read_some, and appends the received descriptors to `descriptors`. They are close-on-exec, and belong to the
// caller. A read ends where other descriptors follow, so the descriptors of two messages never mix. A plain read_some
// drops descriptors. If the process has no room for all of them, the system drops the rest, and the error is
// too_many_files_open. The error_code form still returns the number of bytes read.
std::size_t receive_descriptors(unix_stream& from, void* data, std::size_t size, std::vector<int>& descriptors);
std::size_t receive_descriptors(unix_stream& from, void* data, std::size_t size, std::vector<int>& descriptors,
                                std::error_code& error);

}  // namespace ulexite::net
