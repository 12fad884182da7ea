// How operations of datagram sockets end otherwise: by a close, a stop, a deadline, misuse.

#include "udp_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>

#include <atomic>
#include <thread>

namespace ulexite::test {
namespace {

class UdpEnd : public UdpTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(UdpEnd);

TEST_P(UdpEnd, CloseWakesAReceiver) {
  in_runtime([] {
    for (int i = 0; i < 100; ++i) {
      auto socket = bounded();
      auto receiver = spawn([&] { return receive_code(socket); });
      if (i % 3) let_others_run();
      auto closer = spawn([&] { socket.close(); });
      EXPECT_EQ(receiver.get(), std::errc::bad_file_descriptor);
      closer.get();
      EXPECT_FALSE(socket.is_open());
      EXPECT_EQ(socket.native_handle(), -1);
      EXPECT_EQ(code_of([&] { socket.send_to("x", loopback()); }), std::errc::bad_file_descriptor);
    }
  });
}

TEST_P(UdpEnd, NoneAndMovedFromAreClosed) {
  everywhere([] {
    net::udp_socket none;
    EXPECT_FALSE(none.is_open());
    EXPECT_EQ(receive_code(none), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of([&] { none.send("x"); }), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of([&] { (void)none.local_endpoint(); }), std::errc::bad_file_descriptor);
    auto first = bounded();
    const auto at = first.local_endpoint();
    auto second = std::move(first);
    EXPECT_FALSE(first.is_open());
    EXPECT_EQ(second.local_endpoint(), at);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    auto former = net::udp_socket::adopt(ends[0]), peer = net::udp_socket::adopt(ends[1]);
    former = std::move(second);
    EXPECT_EQ(former.local_endpoint(), at);
    EXPECT_EQ(code_of([&] { peer.send("x"); }), std::errc::connection_refused) << "an assignment closes the former one";
  });
}

TEST_P(UdpEnd, AStopEndsAReceive) {
  in_runtime([] {
    auto left = bounded(), right = bounded();
    for (int i = 0; i < 20; ++i) {
      auto thrower = spawn([&] { receive_text(left); });
      auto teller = spawn([&] { return receive_code(right); });
      if (i % 3) let_others_run();
      thrower.request_stop();
      teller.request_stop();
      EXPECT_THROW(thrower.get(), operation_cancelled);
      EXPECT_EQ(teller.get(), errc::cancelled);
    }
    left.send_to("still here", right.local_endpoint());
    EXPECT_EQ(receive_text(right), "still here");
  });
}

TEST_P(UdpEnd, AReceiveEndsAtItsDeadlineOrItsExpiry) {
  everywhere([] {
    auto socket = bounded();
    {
      const deadline_scope limit(1ms);
      EXPECT_THROW(receive_text(socket), deadline_exceeded);
      EXPECT_EQ(receive_code(socket), errc::deadline_exceeded);
    }
    socket.expires_after(1ms);
    EXPECT_EQ(receive_code(socket), std::make_error_code(std::errc::timed_out));
    EXPECT_EQ(code_of([&] { socket.send_to("x", socket.local_endpoint()); }), std::errc::timed_out)
        << "expired before it began";
    socket.expires_at(steady_clock::now() - 1s);
    EXPECT_EQ(receive_code(socket), std::errc::timed_out);
    socket.expires_never();
    socket.send_to("x", socket.local_endpoint());
    EXPECT_EQ(receive_text(socket), "x");
  });
}

TEST_P(UdpEnd, ReleasedDescriptorIsTheCallers) {
  in_runtime([] {
    auto socket = bounded();
    const auto at = socket.local_endpoint();
    socket.send_to("xy", at);
    char text[2];
    EXPECT_EQ(socket.receive(text, 2), 2u);
    const int fd = socket.release();
    EXPECT_FALSE(socket.is_open());
    auto again = net::udp_socket::adopt(fd);
    EXPECT_EQ(again.local_endpoint(), at);
    EXPECT_EQ(code_of([] { (void)net::udp_socket::adopt(-1); }), std::errc::bad_file_descriptor);
  });
}

TEST(UdpEndOnPlainThreads, TalkToFibersAndAreWokenByAClose) {
  runtime rt({.threads = 2});
  auto server = bounded();
  auto echo = rt.spawn([&] {
    char text[100];
    net::endpoint from;
    std::error_code error;
    for (;;) {
      const std::size_t size = server.receive_from(text, sizeof text, from, error);
      if (error) return error;
      server.send_to(text, size, from);
    }
  });
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] {
      auto client = bounded();
      client.connect(server.local_endpoint());
      for (int k = 0; k < 100; ++k) {
        client.send(std::to_string(k));
        EXPECT_EQ(receive_text(client), std::to_string(k));
      }
    });
  for (auto& client : clients) client.join();
  auto idle = bounded();
  std::thread receiver([&] { EXPECT_EQ(receive_code(idle), std::errc::bad_file_descriptor); });
  for (int turn = 0; turn < 1000; ++turn) std::this_thread::yield();
  idle.close();
  receiver.join();
  server.close();
  EXPECT_EQ(echo.get(), std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace ulexite::test
