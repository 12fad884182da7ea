#pragma once

#include <ulexite/net/endpoint.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ulexite::net {

// A place to connect to, as users write it: a host name or a number, with a port; or the path of a Unix socket. A
// value. Unlike an endpoint it may hold a name, so only resolve() turns it into endpoints.
class address {
 public:
  // Parses "example.org:80", "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/path" or "unix:@name". With
  // `default_port` the port may be missing: "example.org", "[::1]". Never blocks. Throws std::invalid_argument that
  // names the text and the error in it.
  [[nodiscard]] static address parse(std::string_view text, std::optional<std::uint16_t> default_port = std::nullopt);

  // A name or a numeric address without brackets ("example.org", "127.0.0.1", "::1"), and a port. Throws like parse.
  address(std::string_view host, std::uint16_t port);
  // The address of an endpoint.
  address(const endpoint& at);  // NOLINT(google-explicit-constructor): an endpoint is an address

  // The name, or the number without brackets; empty for a Unix socket.
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  // The port; 0 if there is none.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // The address as text that parse accepts.
  [[nodiscard]] std::string str() const;
  // Whether it has a name, which resolve() must look up. If not, resolve() never waits.
  [[nodiscard]] bool has_name() const noexcept { return at_.family() == address_family::none; }

  // Its endpoints for a stream, in the order to try them: see net::resolve, also for the errors. At least one, unless
  // there is an error. Waits if it has a name. A cancellation point.
  [[nodiscard]] std::vector<endpoint> resolve() const;
  [[nodiscard]] std::vector<endpoint> resolve(std::error_code& error) const;

  // Whether both have the same port, and the same number or a name that is spelled the same way.
  friend bool operator==(const address& a, const address& b) noexcept {
    return a.host_ == b.host_ && a.port_ == b.port_ && a.at_ == b.at_;
  }

 private:
  std::string host_;
  std::uint16_t port_;
  endpoint at_;  // none for a name
};

}  // namespace ulexite::net
