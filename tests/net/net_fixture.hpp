#pragma once

// What the tests of net share: each runs on 1, 2, 4 and 8 workers, leaves no descriptor open, and no wake-up was lost.

#include <ulexite/net/io_wait.hpp>
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
inline constexpr auto bound = 30s;

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class NetTest : public testing::TestWithParam<std::size_t> {
 protected:
  // Runs `body` as the main fiber of a new runtime, and ends that.
  template <class Body>
  void in_runtime(Body&& body) {
    open_descriptors();  // the first one may open what stays open
    const std::size_t before = open_descriptors();
    {
      runtime rt({.threads = GetParam()});
      rt.run(std::forward<Body>(body));
      rt.shutdown(shutdown_mode::cancel);
      EXPECT_EQ(rt.metrics().rescued_wakeups, 0u);
      EXPECT_EQ(rt.metrics().fibers_live, 0u);
    }
    EXPECT_EQ(open_descriptors(), before);
  }
};

inline std::string worker_count(const testing::TestParamInfo<std::size_t>& info) {
  return std::to_string(info.param) + (info.param == 1 ? "Worker" : "Workers");
}
#define ULEXITE_ON_ALL_WORKER_COUNTS(Suite) \
  INSTANTIATE_TEST_SUITE_P(Net, Suite, testing::Values(1, 2, 4, 8), worker_count)

inline std::string scratch_path(const char* name) {
  return "/tmp/ulexite_net_test." + std::to_string(::getpid()) + "." + name;
}

inline net::endpoint loopback() { return net::endpoint::parse("127.0.0.1:0"); }

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

// Closes with a reset instead of an end.
inline void reset(net::tcp_stream& stream) {
  const linger at_once{1, 0};
  ASSERT_EQ(setsockopt(stream.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  stream.close();
}

inline std::string read_all(net::tcp_stream& from) {
  std::string text;
  char part[1000];
  while (const std::size_t got = from.read_some(part, sizeof part)) text.append(part, got);
  return text;
}

// The code of the std::system_error that `body` throws; none if it throws nothing.
template <class Body>
std::error_code code_of(Body&& body) {
  try {
    body();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}

// Lets every other fiber that can run do so, some times: an aid to meet an interleaving, not a check.
inline void let_others_run() {
  for (int i = 0; i < 20; ++i) this_fiber::yield();
}

}  // namespace ulexite::test
