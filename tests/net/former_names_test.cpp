#include "net_fixture.hpp"

#include <ulexite/net/udp.hpp>

#include <array>
#include <span>

// Names of before 0.1, which work until 0.2.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ulexite::test {
namespace {

class FormerNames : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(FormerNames);

TEST_P(FormerNames, ConnectTakesATimeAndAHost) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    const net::endpoint at = listener.local_endpoint();
    const std::vector several{at, at};
    std::error_code error;
    EXPECT_TRUE(net::tcp_stream::connect(at, bound).is_open());
    EXPECT_TRUE(net::tcp_stream::connect(at, error).is_open());
    EXPECT_TRUE(net::tcp_stream::connect(at, bound, error).is_open());
    EXPECT_TRUE(net::tcp_stream::connect(several, error).is_open());
    EXPECT_TRUE(net::tcp_stream::connect(several, bound, error).is_open());
    EXPECT_TRUE(net::tcp_stream::connect("127.0.0.1", at.port()).is_open());
    EXPECT_TRUE(net::tcp_stream::connect("127.0.0.1", at.port(), bound).is_open());
    EXPECT_TRUE(net::tcp_stream::connect("127.0.0.1", at.port(), error).is_open());
    EXPECT_TRUE(net::tcp_stream::connect("127.0.0.1", at.port(), bound, error).is_open());
    EXPECT_FALSE(net::tcp_stream::connect(at, -1s, error).is_open());
    EXPECT_EQ(error, std::errc::timed_out);
  });
}

TEST_P(FormerNames, StreamsTakeSpansOfBytes) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    std::array<std::byte, 4> data{};
    pair.left.write(std::span<const std::byte>(data));
    EXPECT_EQ(pair.right.read(data), 4u);
    pair.left.write(std::span<const std::byte>(data));
    EXPECT_EQ(pair.right.read_some(data), 4u);
    net::udp_socket left(loopback()), right(loopback());
    left.send_to(data, right.local_endpoint());
    EXPECT_EQ(right.receive(data), 4u);
    net::endpoint from;
    left.connect(right.local_endpoint());
    left.send(data);
    EXPECT_EQ(right.receive_from(data, from), 4u);
  });
}

TEST_P(FormerNames, WaitForADescriptor) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const int fd = pair.left.native_handle();
    net::wait_writable(fd);
    EXPECT_TRUE(net::wait_writable_for(fd, bound));
    EXPECT_TRUE(net::wait_writable_until(fd, steady_clock::now()));
    EXPECT_FALSE(net::wait_readable_for(fd, 0s));
    EXPECT_FALSE(net::wait_readable_until(fd, steady_clock::now()));
    pair.right.write("x");
    net::wait_readable(fd);
  });
}

}  // namespace
}  // namespace ulexite::test

#pragma GCC diagnostic pop
