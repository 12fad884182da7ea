#pragma once

// Turns names into endpoints with the system's resolver. It uses /etc/hosts, nsswitch.conf and DNS (A and AAAA), and
// orders the results by RFC 6724.

#include <ulexite/net/endpoint.hpp>
#include <ulexite/runtime/wait/suspend.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <vector>

namespace ulexite::detail {

std::vector<net::endpoint> resolve_until(std::string_view host, std::string_view service, std::int64_t deadline);
std::vector<net::endpoint> resolve_until(std::string_view host, std::string_view service, std::int64_t deadline,
                                         std::error_code& error);

}  // namespace ulexite::detail

namespace ulexite::net {

// The error category of getaddrinfo, named "getaddrinfo".
[[nodiscard]] const std::error_category& resolve_category() noexcept;

// Resolves `host` (a name or a numeric address) and `service` (a name or a number). Returns the endpoints for a stream
// connection, in the order to try them. Translates numbers at once. For a name the fiber waits while getaddrinfo runs
// on the pool behind blocking(); a plain thread blocks in it. A cancellation point: the fiber then returns at once, but
// the pool's thread is busy until the system gives up. So with a dead name server many calls fill the pool, and other
// calls on the pool wait. Throws std::system_error that names host and service: with invalid_argument if they contain a
// NUL, with EAI_SERVICE for a number that is not a port.
[[nodiscard]] inline std::vector<endpoint> resolve(std::string_view host, std::string_view service) {
  return detail::resolve_until(host, service, detail::no_deadline);
}
// As above, but sets `error` instead of throwing, and then returns nothing. Errors: those of resolve_category, those of
// the system, errc::cancelled, errc::deadline_exceeded.
[[nodiscard]] inline std::vector<endpoint> resolve(std::string_view host, std::string_view service,
                                                   std::error_code& error) {
  return detail::resolve_until(host, service, detail::no_deadline, error);
}
// As above, but waits at most `time`, and then fails with timed_out. On a plain thread the limit has no effect.
template <class Rep, class Period>
[[nodiscard]] std::vector<endpoint> resolve(std::string_view host, std::string_view service,
                                            std::chrono::duration<Rep, Period> time) {
  return detail::resolve_until(host, service, detail::deadline_after(time));
}
template <class Rep, class Period>
[[nodiscard]] std::vector<endpoint> resolve(std::string_view host, std::string_view service,
                                            std::chrono::duration<Rep, Period> time, std::error_code& error) {
  return detail::resolve_until(host, service, detail::deadline_after(time), error);
}

}  // namespace ulexite::net
