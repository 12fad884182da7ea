#pragma once

// A nats-server of a test's own, on a free port of 127.0.0.1.

#include "support/server_process.hpp"

#include <ulexite/net/tcp.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <string>

namespace ulexite::test {

class nats_server : public server_process {
 public:
  // Whether Debian's nats-server is there.
  static bool installed() { return is_installed("nats-server"); }

  nats_server() : port_(net::tcp_listener(net::endpoint::parse("127.0.0.1:0")).local_endpoint().port()) { start(); }

  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }

  // Starts it again on the same port, and waits until it answers.
  void start() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port_);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server_process::start({"nats-server", "-a", "127.0.0.1", "-p", std::to_string(port_), "-l", "/dev/null"},
                          "/dev/null", [&] { return !answer_of(name, "", 4).empty(); });  // it speaks first
  }

 private:
  const std::uint16_t port_;
};

}  // namespace ulexite::test
