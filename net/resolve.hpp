#pragma once

// Turns names into endpoints with the system's resolver. It uses /etc/hosts, nsswitch.conf and DNS (A and AAAA), and
// orders the results by RFC 6724.

#include <ulexite/net/endpoint.hpp>

#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace ulexite::net {

// The error category of getaddrinfo, named "getaddrinfo".
[[nodiscard]] const std::error_category& resolve_category() noexcept;

// How to resolve.
struct resolve_options {
  std::optional<std::chrono::nanoseconds> timeout{};  // none: only the fiber's deadline
};

// Resolves `host` (a name or a numeric address) and `service` (a name or a number). Returns the endpoints for a stream
// connection, in the order to try them. Translates numbers without a wait. For a name the fiber waits while getaddrinfo
// runs on the pool behind blocking(); a plain thread blocks in it. A cancellation point: the fiber then returns
// immediately, but the pool's thread is busy until the system gives up. So with a dead name server many calls fill the
// pool, and other calls on the pool wait. Throws std::system_error that names host and service. The code is
// invalid_argument if they contain a NUL, and timed_out after the timeout. It is EAI_SERVICE for a number that is not a
// port, and for the services "" and "*", and EAI_NONAME for the host "*". On a plain thread, and in a run of
// testing::explore, getaddrinfo blocks the thread, and the timeout has no effect.
[[nodiscard]] std::vector<endpoint> resolve(std::string_view host, std::string_view service,
                                            const resolve_options& options = {});
// As above, but sets `error` instead of throwing, and then returns nothing. Errors: those of resolve_category, those of
// the system, errc::cancelled, errc::deadline_exceeded.
[[nodiscard]] std::vector<endpoint> resolve(std::string_view host, std::string_view service,
                                            const resolve_options& options, std::error_code& error);
[[nodiscard]] inline std::vector<endpoint> resolve(std::string_view host, std::string_view service,
                                                   std::error_code& error) {
  return resolve(host, service, {}, error);
}

}  // namespace ulexite::net
