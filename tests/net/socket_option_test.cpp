// Options of a socket, time limits of each direction, peeking.

#include "net_fixture.hpp"

#include <ulexite/sync/task_group.hpp>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <string>
#include <string_view>

namespace ulexite::test {
namespace {

class SocketOptionTest : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(SocketOptionTest);

TEST_P(SocketOptionTest, AreSetAndRead) {
  in_runtime([] {
    auto ends = stream_pair::tcp();
    ends.left.set_option(IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);
    EXPECT_EQ(ends.left.option(IPPROTO_TCP, TCP_USER_TIMEOUT), 5000);
    ends.left.set_option(SOL_SOCKET, SO_LINGER, linger{1, 3});
    EXPECT_EQ(ends.left.option<linger>(SOL_SOCKET, SO_LINGER).l_linger, 3);
  });
}

TEST_P(SocketOptionTest, RefusalsNameTheOption) {
  in_runtime([] {
    auto ends = stream_pair::tcp();
    try {
      ends.left.set_option(SOL_SOCKET, 12345, 1);
      FAIL() << "there is no such option";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::no_protocol_option);
      EXPECT_NE(std::string(error.what()).find("option 12345 of level 1"), std::string::npos) << error.what();
    }
    ends.left.close();
    EXPECT_THROW(ends.left.set_option(SOL_SOCKET, SO_KEEPALIVE, 1), std::system_error);
  });
}

TEST_P(SocketOptionTest, TheExpiryOfReadsLeavesWritesAlone) {
  in_runtime([] {
    auto ends = stream_pair::tcp();
    ends.left.reads_expire_after(1ms);
    char byte;
    std::error_code error;
    EXPECT_EQ(ends.left.read_some(&byte, 1, error), 0u);
    EXPECT_EQ(error, std::errc::timed_out);
    EXPECT_EQ(ends.left.peek(&byte, 1, error), 0u);
    EXPECT_EQ(error, std::errc::timed_out);
    ends.left.write("x");
    EXPECT_EQ(ends.right.read_some(&byte, 1), 1u);
    ends.right.write("y");
    ends.left.reads_expire_never();
    EXPECT_EQ(ends.left.read_some(&byte, 1), 1u);
  });
}

TEST_P(SocketOptionTest, TheExpiryOfWritesLeavesReadsAlone) {
  in_runtime([] {
    auto ends = stream_pair::unix_sockets();
    ends.left.writes_expire_at(steady_clock::now());
    std::error_code error;
    EXPECT_EQ(ends.left.write_some("x", 1, error), 0u);
    EXPECT_EQ(error, std::errc::timed_out);
    ends.right.write("y");
    char byte;
    EXPECT_EQ(ends.left.read_some(&byte, 1), 1u);
    ends.left.expires_never();
    EXPECT_EQ(ends.left.write_some("x", 1), 1u);
  });
}

TEST_P(SocketOptionTest, APeekLeavesTheData) {
  in_runtime([] {
    for (auto make : {stream_pair::tcp, stream_pair::unix_sockets}) {
      auto ends = make();
      std::array<char, 10> bytes{};
      scope([&](task_group& group) {
        group.spawn([&] { ends.right.write("hello"); });
        EXPECT_EQ(ends.left.peek(bytes.data(), 1), 1u);
      });
      EXPECT_EQ(ends.left.peek(bytes.data(), 10), 5u);
      EXPECT_EQ(std::string_view(bytes.data(), 5), "hello");
      EXPECT_EQ(ends.left.read_some(bytes.data(), 10), 5u);
      ends.right.close();
      EXPECT_EQ(ends.left.peek(bytes.data(), 10), 0u);
    }
  });
}

// After a read that drained the queue, and a send, a reader waits for an edge before it asks. A peek takes that edge.
TEST_P(SocketOptionTest, AReadAfterAPeekThatWaitedDoesNotWait) {
  in_runtime([] {
    auto ends = stream_pair::tcp();
    std::array<char, 10> bytes{};
    for (int round = 0; round < 20; ++round) {
      scope([&](task_group& group) {
        group.spawn([&] {
          ends.right.write("ask");
          ends.right.read(bytes.data() + 5, 3);
          ends.right.write("more");
        });
        std::array<char, 10> mine{};
        EXPECT_EQ(ends.left.read(mine.data(), 3), 3u);
        ends.left.write("yes");
        EXPECT_GE(ends.left.peek(mine.data(), 4), 1u);
        EXPECT_EQ(ends.left.read(mine.data(), 4), 4u);
        EXPECT_EQ(std::string_view(mine.data(), 4), "more");
      });
    }
  });
}

}  // namespace
}  // namespace ulexite::test
