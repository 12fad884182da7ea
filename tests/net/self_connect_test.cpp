// A connection to a local port without a listener, if the system picks the same port for it: TCP then connects the
// socket to itself. It picks at random; here connect binds the socket first, so that it happens each time.

#include "net_fixture.hpp"

#include <sys/syscall.h>

#include <atomic>

namespace {

std::atomic<bool> picks_the_same{false};

}  // namespace

extern "C" int connect(int fd, const sockaddr* to, socklen_t size) {
  if (picks_the_same) ::bind(fd, to, size);  // fails the second time, when it is bound already
  return static_cast<int>(::syscall(SYS_connect, fd, to, size));
}

namespace ulexite::test {
namespace {

class SelfConnect : public NetTest {
 protected:
  SelfConnect() { picks_the_same = true; }
  ~SelfConnect() override { picks_the_same = false; }
};
ULEXITE_ON_ALL_WORKER_COUNTS(SelfConnect);

// A port without a listener, unless another program takes it by chance.
net::endpoint free_port(const char* at) { return net::tcp_listener(net::endpoint::parse(at)).local_endpoint(); }

TEST_P(SelfConnect, IsRefused) {
  in_runtime([] {
    for (const char* at : {"127.0.0.1:0", "[::1]:0"}) {
      std::error_code error;
      (void)net::tcp_stream::connect(free_port(at), {}, error);
      EXPECT_EQ(error, std::errc::connection_refused) << at << ": " << error.message();
    }
    std::error_code error;
    (void)net::tcp_stream::connect(net::address("127.0.0.1", free_port("127.0.0.1:0").port()), {}, error);
    EXPECT_EQ(error, std::errc::connection_refused) << error.message();
  });
}

TEST_P(SelfConnect, IsRefusedAmongSeveralEndpoints) {
  in_runtime([] {
    std::error_code error;
    const std::vector<net::endpoint> to{free_port("127.0.0.1:0"), free_port("127.0.0.1:0")};
    (void)net::tcp_stream::connect(to, {}, error);
    EXPECT_EQ(error, std::errc::connection_refused) << error.message();
    net::tcp_listener listener(loopback());
    const auto made = net::tcp_stream::connect(std::vector{to[0], listener.local_endpoint()}, {}, error);
    EXPECT_EQ(made.remote_endpoint(), listener.local_endpoint()) << error.message();
  });
}

// It would have been the server's port.
TEST_P(SelfConnect, LeavesThePortFree) {
  in_runtime([] {
    const net::endpoint at = free_port("127.0.0.1:0");
    std::error_code error;
    (void)net::tcp_stream::connect(at, {}, error);
    EXPECT_NO_THROW(net::tcp_listener{at});
  });
}

}  // namespace
}  // namespace ulexite::test
