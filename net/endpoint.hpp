#pragma once

#include <ulexite/base/standard.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sockaddr_un;

namespace ulexite::net {

// The kind of an endpoint.
enum class address_family : std::uint8_t {
  none,   // no endpoint
  ipv4,   // an IPv4 address and a port
  ipv6,   // an IPv6 address and a port
  local,  // a Unix socket
};

// The address of a socket: an IPv4 or IPv6 address with a port, or the path of a Unix socket. A value.
class endpoint {
 public:
  // Nowhere: family none.
  endpoint() noexcept = default;
  // Never throw, and never change `other`.
  endpoint(const endpoint& other) noexcept = default;
  endpoint& operator=(const endpoint& other) noexcept = default;

  // Parses "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/path", or "unix:@name" for an abstract one. Takes
  // numbers only: for names there is resolve. Never blocks. Throws std::invalid_argument that names the text and the
  // error in it, such as a NUL.
  [[nodiscard]] static endpoint parse(std::string_view text);

  // A numeric address without brackets ("127.0.0.1", "::1") and a port. Throws like parse.
  [[nodiscard]] static endpoint ip(std::string_view address, std::uint16_t port);

  // The path of a Unix socket; a leading '@' makes it abstract. Throws like parse, when it is empty or too long.
  [[nodiscard]] static endpoint local(std::string_view path);

  // From an address of a system call. Throws std::invalid_argument for another family or a wrong length, std::bad_alloc
  // for a path that needs memory.
  [[nodiscard]] static endpoint from(const sockaddr* address, socklen_t size);

  // The kind of the endpoint.
  [[nodiscard]] address_family family() const noexcept;
  // The port; 0 if there is none.
  [[nodiscard]] std::uint16_t port() const noexcept;
  // The endpoint as text that parse accepts; "unix:" for a Unix socket without a name, "" for no endpoint.
  [[nodiscard]] std::string str() const;
  // The path of a Unix socket in the file system; empty for any other.
  [[nodiscard]] std::string_view path() const noexcept;

  // The address for system calls.
  [[nodiscard]] const sockaddr* data() const noexcept {
    return long_ ? reinterpret_cast<const sockaddr*>(long_.get()) : reinterpret_cast<const sockaddr*>(&short_);
  }
  // The length of data(), for system calls.
  [[nodiscard]] socklen_t size() const noexcept { return size_; }

  // Whether both have the same family, address, port and scope, or the same path.
  friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

 private:
  // Every socket keeps its peer's endpoint, so a path, which is long and rare, has its own memory.
  sockaddr_in6 short_{};  // an address of any family, if it has room here
  socklen_t size_ = 0;
  std::shared_ptr<const sockaddr_un> long_;  // any other; shared by the copies
};

}  // namespace ulexite::net
