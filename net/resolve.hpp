#pragma once

#include <ulexite/net/endpoint.hpp>

#include <cstdint>
#include <string_view>
#include <system_error>
#include <vector>

namespace ulexite::net {

// The error category of getaddrinfo, named "getaddrinfo".
[[nodiscard]] const std::error_category& resolve_category() noexcept;

// The endpoints of `host` (a name or a numeric address) and `service` (a name or a number) for a stream connection, in
// the order in which to try them. Numbers are translated at once. A name blocks the calling thread in getaddrinfo for
// as long as that takes, and with it all fibers waiting for this worker. Throws std::system_error naming host and
// service.
[[nodiscard]] std::vector<endpoint> resolve(std::string_view host, std::string_view service);

}  // namespace ulexite::net
