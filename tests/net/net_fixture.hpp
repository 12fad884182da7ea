#pragma once

// Shared by the tests of net: each runs on 1, 2, 4 and 16 workers, leaves no descriptor open, and loses no wake-up.

#include "support/clean_runtime.hpp"

#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ulexite::test {

using namespace std::chrono_literals;

// The one bound of every wait: much longer than anything here takes, on a slow machine under a sanitizer too.
inline constexpr auto bound = 60s;

class NetTest : public testing::TestWithParam<std::size_t> {
 protected:
  // Runs `body` as the main fiber of a new runtime, and ends that.
  template <class Body>
  void in_runtime(Body&& body, runtime_options options = {}) {
    options.threads = GetParam();
    run_and_leave_nothing(options, std::forward<Body>(body));
  }
};

inline std::string worker_count(const testing::TestParamInfo<std::size_t>& info) {
  return std::to_string(info.param) + (info.param == 1 ? "Worker" : "Workers");
}
#define ULEXITE_ON_ALL_WORKER_COUNTS(Suite) \
  INSTANTIATE_TEST_SUITE_P(Net, Suite, testing::Values(1, 2, 4, 16), worker_count)

inline std::string scratch_path(const char* name) {
  return "/tmp/ulexite_net_test." + std::to_string(::getpid()) + "." + name;
}

inline net::endpoint loopback() { return net::endpoint::parse("127.0.0.1:0"); }

// A port that refuses connections, and that no other program gets during the test: bound, without a listener. It may be
// the port of a listener that shares it. Then it refuses after the close of that listener.
class refusing_port {
 public:
  explicit refusing_port(const net::endpoint& at = loopback())
      : bound_(detail::make_bound(at, SOCK_STREAM, "holding",
                                  [&](detail::socket& made) { return detail::bind(made, at, true); })),
        at_(detail::name_of(bound_, ::getsockname)) {}
  [[nodiscard]] const net::endpoint& at() const { return at_; }

 private:
  const detail::socket_handle bound_;
  const net::endpoint at_;
};

// Two connected streams.
struct stream_pair {
  static stream_pair unix_sockets() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return stream_pair(net::tcp_stream::adopt(ends[0]), net::tcp_stream::adopt(ends[1]));
  }
  // Also on a plain thread: the backlog holds the connection.
  static stream_pair tcp() {
    net::tcp_listener listener(loopback());
    auto left = net::tcp_stream::connect(listener.local_endpoint());
    return stream_pair(std::move(left), listener.accept());
  }
  stream_pair(net::tcp_stream l, net::tcp_stream r) : left(std::move(l)), right(std::move(r)) {
    left.expires_after(bound);
    right.expires_after(bound);
  }
  net::tcp_stream left, right;
};

inline std::string read_all(net::tcp_stream& from) {
  std::string text;
  char part[1000];
  while (const std::size_t got = from.read_some(part, sizeof part)) text.append(part, got);
  return text;
}

// Lets every other fiber that can run do so, some times: an aid to meet an interleaving, not a check.
inline void let_others_run() {
  for (int i = 0; i < 20; ++i) this_fiber::yield();
}

}  // namespace ulexite::test
