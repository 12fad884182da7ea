// Connecting and listening: who is refused, who waits, and with which options.

#include "descriptor_limit.hpp"
#include "net_fixture.hpp"

#include <ulexite/fiber/context.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <optional>

namespace ulexite::test {
namespace {

class TcpConnect : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(TcpConnect);

TEST_P(TcpConnect, RefusedConnectionNamesTheEndpoint) {
  in_runtime([] {
    const refusing_port refusing;
    const net::endpoint nobody = refusing.at();
    try {
      (void)net::tcp_stream::connect(nobody);
      FAIL();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::connection_refused);
      EXPECT_NE(std::string(error.what()).find(nobody.str()), std::string::npos) << error.what();
    }
    std::error_code error;
    EXPECT_FALSE(net::tcp_stream::connect(nobody, {}, error).is_open());
    EXPECT_EQ(error, std::errc::connection_refused);
    EXPECT_EQ(code_of([] { (void)net::tcp_stream::connect(net::endpoint::local("/nonexistent/x")); }),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(code_of([&] { (void)net::tcp_stream::connect(net::address("127.0.0.1", nobody.port())); }),
              std::errc::connection_refused);
  });
}

// A Unix listener with a full backlog accepts no connection, and makes no event when it has room again.
TEST_P(TcpConnect, ConnectWaitsForAFullUnixBacklog) {
  const auto at = net::endpoint::local("@" + scratch_path("backlog"));
  in_runtime([&] {
    net::tcp_listener listener(at, {.backlog = 0});
    auto first = net::tcp_stream::connect(at);
    EXPECT_EQ(code_of([&] { (void)net::tcp_stream::connect(at, {.timeout = 5ms}); }), std::errc::timed_out);
    auto second = spawn([&] { return net::tcp_stream::connect(at, {.timeout = bound}).is_open(); });
    let_others_run();
    (void)listener.accept();
    EXPECT_TRUE(second.get());
  });
}

TEST_P(TcpConnect, ConnectsToAHost) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    const auto port = listener.local_endpoint().port();
    EXPECT_TRUE(net::tcp_stream::connect(net::address("127.0.0.1", port), {.timeout = bound}).is_open());
    EXPECT_TRUE(net::tcp_stream::connect(net::address("localhost", port), {.timeout = bound}).is_open());
    std::error_code error;
    EXPECT_FALSE(net::tcp_stream::connect(net::address("no.such.host.invalid", port), {}, error).is_open());
    EXPECT_TRUE(error);
  });
}

TEST_P(TcpConnect, PortInUseNamesTheEndpoint) {
  in_runtime([] {
    net::tcp_listener first(loopback());
    try {
      net::tcp_listener second(first.local_endpoint());
      FAIL();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::address_in_use);
      EXPECT_NE(std::string(error.what()).find(first.local_endpoint().str()), std::string::npos) << error.what();
    }
  });
}

TEST_P(TcpConnect, ListenersMayShareAPort) {
  in_runtime([] {
    net::tcp_listener first(loopback(), {.reuse_port = true});
    net::tcp_listener second(first.local_endpoint(), {.reuse_port = true});
    EXPECT_EQ(first.local_endpoint(), second.local_endpoint());
  });
}

int option(const net::tcp_stream& stream, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(stream.native_handle(), level, name, &value, &size), 0);
  return value;
}

bool nodelay(const net::tcp_stream& stream) { return option(stream, IPPROTO_TCP, TCP_NODELAY) != 0; }

TEST_P(TcpConnect, OptionsAreSet) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    EXPECT_TRUE(nodelay(pair.left)) << "connected";
    EXPECT_TRUE(nodelay(pair.right)) << "accepted";
    pair.left.set_nodelay(false);
    EXPECT_FALSE(nodelay(pair.left));
    pair.left.set_keepalive(70s, 5s, 3);
    EXPECT_EQ(option(pair.left, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option(pair.left, IPPROTO_TCP, TCP_KEEPIDLE), 70);
    EXPECT_EQ(option(pair.left, IPPROTO_TCP, TCP_KEEPINTVL), 5);
    EXPECT_EQ(option(pair.left, IPPROTO_TCP, TCP_KEEPCNT), 3);
    EXPECT_EQ(code_of([&] { pair.left.set_keepalive(0s, 5s, 3); }), std::errc::invalid_argument);
    EXPECT_EQ(code_of([&] { pair.left.set_keepalive(70s, std::chrono::seconds::max(), 3); }),
              std::errc::invalid_argument);
    pair.left.set_keepalive(false);
    EXPECT_EQ(option(pair.left, SOL_SOCKET, SO_KEEPALIVE), 0);
    pair.left.set_send_buffer(30'000);
    pair.left.set_receive_buffer(20'000);
    EXPECT_EQ(option(pair.left, SOL_SOCKET, SO_SNDBUF), 60'000) << "the system doubles it";
    EXPECT_EQ(option(pair.left, SOL_SOCKET, SO_RCVBUF), 40'000);
    EXPECT_EQ(pair.left.local_endpoint(), pair.right.remote_endpoint());
    EXPECT_NE(::fcntl(pair.right.native_handle(), F_GETFD) & FD_CLOEXEC, 0);
    auto local = stream_pair::unix_sockets();
    local.left.set_nodelay(true);
    local.left.set_keepalive(70s, 5s, 3);
    local.left.abort();
    EXPECT_EQ(read_all(local.right), "") << "no reset there";
  });
}

// Out of descriptors, accept waits until there are some.
TEST_P(TcpConnect, AcceptOutlastsAWantOfDescriptors) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    auto client = net::tcp_stream::connect(listener.local_endpoint());
    std::optional<hoard> everything(std::in_place);
    auto acceptor = spawn([&] { return listener.accept().is_open(); });
    this_fiber::sleep_for(30ms);  // some tries
    EXPECT_FALSE(acceptor.done());
    everything.reset();
    EXPECT_TRUE(acceptor.get());
  });
}

}  // namespace
}  // namespace ulexite::test
