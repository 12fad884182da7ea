// Unix sockets also carry descriptors and credentials.

#include "net_fixture.hpp"

#include <ulexite/net/unix.hpp>
#include <ulexite/sync/task_group.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace ulexite::test {
namespace {

class UnixPassingTest : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(UnixPassingTest);

TEST_P(UnixPassingTest, AStreamTravelsThroughAnother) {
  in_runtime([] {
    auto way = stream_pair::unix_sockets();
    auto passed = stream_pair::tcp();
    scope([&](task_group& group) {
      group.spawn([&] {
        const int fd = passed.left.release();
        net::send_descriptors(way.left, "here", std::array{fd});
        ::close(fd);
      });
      std::vector<int> received;
      std::array<char, 10> text;
      EXPECT_EQ(net::receive_descriptors(way.right, text.data(), text.size(), received), 4u);
      ASSERT_EQ(received.size(), 1u);
      EXPECT_EQ(::fcntl(received[0], F_GETFD), FD_CLOEXEC);
      auto left = net::tcp_stream::adopt(received[0]);
      left.write("through");
      left.close();
      EXPECT_EQ(read_all(passed.right), "through");
    });
  });
}

TEST_P(UnixPassingTest, ATcpConnectionCarriesNone) {
  in_runtime([] {
    auto way = stream_pair::tcp();
    std::error_code error;
    net::send_descriptors(way.left, "x", std::array{0}, error);
    EXPECT_EQ(error, std::errc::not_supported);
    way.left.write("y");
    char byte;
    EXPECT_EQ(way.right.read_some(&byte, 1), 1u);
    EXPECT_EQ(byte, 'y') << "the data went without the descriptor";
  });
}

TEST_P(UnixPassingTest, DescriptorsOfTwoMessagesNeverMix) {
  in_runtime([] {
    auto way = stream_pair::unix_sockets();
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    net::send_descriptors(way.left, "a", std::array{fd, fd});
    net::send_descriptors(way.left, "b", std::array{fd});
    net::send_descriptors(way.left, "plain", {});
    ::close(fd);
    std::vector<int> received;
    std::array<char, 100> text;
    EXPECT_EQ(net::receive_descriptors(way.right, text.data(), text.size(), received), 1u);
    EXPECT_EQ(received.size(), 2u);
    std::size_t got = net::receive_descriptors(way.right, text.data(), text.size(), received);
    EXPECT_EQ(text[0], 'b');
    EXPECT_EQ(received.size(), 3u) << "appended";
    while (got < 6) got += net::receive_descriptors(way.right, text.data(), text.size(), received);
    EXPECT_EQ(received.size(), 3u);
    for (const int each : received) EXPECT_EQ(::close(each), 0);
  });
}

TEST_P(UnixPassingTest, AsManyAsTheSystemTakesAndNoMore) {
  in_runtime([] {
    auto way = stream_pair::unix_sockets();
    const std::vector<int> most(253, STDERR_FILENO), too_many(254, STDERR_FILENO);
    net::send_descriptors(way.left, "x", most);
    std::vector<int> received;
    char byte;
    EXPECT_EQ(net::receive_descriptors(way.right, &byte, 1, received), 1u);
    EXPECT_EQ(received.size(), 253u);
    for (const int each : received) ::close(each);
    try {
      net::send_descriptors(way.left, "x", too_many);
      FAIL();
    } catch (const std::invalid_argument& refusal) {
      EXPECT_NE(std::string(refusal.what()).find("254"), std::string::npos);
    }
    EXPECT_THROW(net::send_descriptors(way.left, "", most), std::invalid_argument);
    std::error_code error;
    net::send_descriptors(way.left, "x", std::array{-1}, error);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
  });
}

TEST_P(UnixPassingTest, CredentialsAreThisProcess) {
  in_runtime([] {
    auto way = stream_pair::unix_sockets();
    const auto peer = net::credentials_of_peer(way.left);
    EXPECT_EQ(peer.process, ::getpid());
    EXPECT_EQ(peer.user, ::geteuid());
    EXPECT_EQ(peer.group, ::getegid());
    auto tcp = stream_pair::tcp();
    EXPECT_THROW(static_cast<void>(net::credentials_of_peer(tcp.left)), std::system_error);
  });
}

}  // namespace
}  // namespace ulexite::test
