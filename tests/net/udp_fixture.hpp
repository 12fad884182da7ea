#pragma once

// Shared by the tests of datagram sockets.

#include "net_fixture.hpp"

#include <ulexite/net/udp.hpp>

namespace ulexite::test {

class UdpTest : public NetTest {
 protected:
  // In fibers and on plain threads.
  template <class Body>
  void everywhere(Body body) {
    in_runtime(body);
    body();
  }
};
inline net::udp_socket bounded(const net::endpoint& at = loopback()) {
  net::udp_socket made(at);
  made.expires_after(bound);
  return made;
}

inline std::string receive_text(net::udp_socket& from) {
  char text[2000];
  return {text, from.receive(text, sizeof text)};
}

inline std::error_code receive_code(net::udp_socket& from) {
  char c;
  std::error_code error;
  from.receive(&c, 1, error);
  return error;
}

}  // namespace ulexite::test
