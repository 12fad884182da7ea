#pragma once

// What streams and listeners do with a socket before it is one of theirs. Net's own: nothing for users.

#include <ulexite/net/endpoint.hpp>

#include <cstdint>
#include <string>
#include <system_error>

namespace ulexite::detail {

class socket;

// Throws `error` as what it is: operation_cancelled, or std::system_error saying `what` was being done.
[[noreturn]] void fail(std::error_code error, const std::string& what);

// Sleeps. A cancellation point, told as errc::cancelled.
std::error_code pause_until(std::int64_t deadline);

// A non-blocking stream socket for an endpoint of that family, with TCP_NODELAY on if it is of TCP. -1 on an error.
int make_socket(const net::endpoint& at, std::error_code& error) noexcept;

// Connects a socket of make_socket. Waits, until `deadline`.
void connect(socket& from, const net::endpoint& to, std::int64_t deadline, std::error_code& error);

// Its own or its peer's endpoint, by getsockname or getpeername. Throws std::system_error.
net::endpoint name_of(int fd, int (*ask)(int, sockaddr*, socklen_t*));

}  // namespace ulexite::detail
