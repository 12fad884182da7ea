#pragma once

// Names to endpoints, by the system's own resolver: /etc/hosts, nsswitch.conf and DNS as it is configured there, with
// A and AAAA, in the order of RFC 6724.

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

// The endpoints of `host` (a name or a numeric address) and `service` (a name or a number) for a stream connection, in
// the order in which to try them. Numbers are translated at once. For a name the fiber waits, while getaddrinfo runs on
// the pool behind blocking(); a plain thread blocks in it. A cancellation point: the fiber then leaves at once, but the
// thread of the pool is busy until the system gives up. So with a dead name server many calls fill the pool, and other
// calls on the pool wait. Throws std::system_error naming host and service, with invalid_argument if they contain a
// NUL, and with EAI_SERVICE for a number that is not a port.
[[nodiscard]] inline std::vector<endpoint> resolve(std::string_view host, std::string_view service) {
  return detail::resolve_until(host, service, detail::no_deadline);
}
// The same, but an error is told, with nothing found: of resolve_category, of the system, errc::cancelled,
// errc::deadline_exceeded.
[[nodiscard]] inline std::vector<endpoint> resolve(std::string_view host, std::string_view service,
                                                   std::error_code& error) {
  return detail::resolve_until(host, service, detail::no_deadline, error);
}
// For no longer than `time`: then timed_out. A plain thread does not notice that.
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
