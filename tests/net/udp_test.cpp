// Datagram sockets over UDP: sending and receiving.

#include "udp_fixture.hpp"

#include "support/waiting.hpp"

#include <ulexite/sync/task_group.hpp>

#include <sys/socket.h>

#include <set>
#include <string_view>

namespace ulexite::test {
namespace {

class Udp : public UdpTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(Udp);

// A port without a receiver, which no other program can take: its socket receives only from itself.
struct deserted_port {
  deserted_port() { holder.connect(at); }
  net::udp_socket holder{loopback()};
  const net::endpoint at = holder.local_endpoint();
};

void expect_exchange(const net::endpoint& at) {
  auto left = bounded(at), right = bounded(at);
  left.send_to("question", right.local_endpoint());
  char text[100];
  net::endpoint from;
  ASSERT_EQ(right.receive_from(text, sizeof text, from), 8u);
  EXPECT_EQ(std::string_view(text, 8), "question");
  EXPECT_EQ(from, left.local_endpoint());
  auto answerer = spawn([&] {
    net::endpoint asker;
    const std::size_t size = right.receive_from(text, sizeof text, asker);
    right.send_to(text, size, asker);
  });
  let_others_run();
  left.send_to("again", right.local_endpoint());
  EXPECT_EQ(receive_text(left), "again");
  answerer.get();
}

TEST_P(Udp, ExchangesDatagramsOverIpv4) {
  in_runtime([] { expect_exchange(loopback()); });
}

TEST_P(Udp, ExchangesDatagramsOverIpv6) {
  in_runtime([] {
    const auto at = net::endpoint::parse("[::1]:0");
    if (code_of([&] { net::udp_socket probe(at); })) GTEST_SKIP() << "no IPv6 here";
    expect_exchange(at);
  });
}

TEST_P(Udp, ALongerDatagramIsCutAndTold) {
  everywhere([] {
    auto left = bounded(), right = bounded();
    left.connect(right.local_endpoint());
    char text[3];
    net::endpoint from;
    std::error_code error;
    left.send("abcdef");  // one at a time: one may overtake another
    EXPECT_EQ(right.receive_from(text, 3, from, error), 3u);
    EXPECT_EQ(error, std::errc::message_size);
    EXPECT_EQ(std::string_view(text, 3), "abc");
    EXPECT_EQ(from, left.local_endpoint());
    left.send("ghi");
    EXPECT_EQ(right.receive(text, 3, error), 3u) << "as long as the buffer is not too long";
    EXPECT_FALSE(error);
    left.send("jk");
    EXPECT_EQ(code_of([&] { right.receive(text, 1); }), std::errc::message_size);
  });
}

// Linux reports the end of the stream, and a receive still finds nothing.
TEST_P(Udp, AReceiveAfterAShutdownExpiresAndLetsOthersRun) {
  in_runtime([] {
    net::udp_socket shut(loopback());
    shut.expires_after(300ms);
    auto receiver = spawn([&] { return receive_code(shut); });
    wait_until_others_wait();
    ASSERT_EQ(::shutdown(shut.native_handle(), SHUT_RD), -1) << "it is not connected";
    EXPECT_EQ(receiver.get(), std::errc::timed_out);
    EXPECT_EQ(receive_code(shut), std::errc::timed_out);
    shut.expires_after(20ms);
    EXPECT_EQ(receive_code(shut), std::errc::timed_out);
  });
}

TEST_P(Udp, AnEmptyDatagramIsOne) {
  everywhere([] {
    auto left = bounded(), right = bounded();
    left.connect(right.local_endpoint());
    char text[3];
    net::endpoint from;
    left.send("");  // one at a time: one may overtake another
    EXPECT_EQ(right.receive(text, 3), 0u);
    left.send_to("", right.local_endpoint());
    EXPECT_EQ(right.receive_from(nullptr, 0, from), 0u);
    EXPECT_EQ(from, left.local_endpoint());
    left.send("x");
    EXPECT_EQ(receive_text(right), "x");
  });
}

// Each receive meets an empty socket before the next datagram comes: none may be missed for want of an edge.
TEST_P(Udp, ReceiverThatWaitsForEachDatagramGetsAll) {
  in_runtime([] {
    auto left = bounded(), right = bounded();
    left.connect(right.local_endpoint());
    right.connect(left.local_endpoint());
    auto echo = spawn([&] {
      for (int i = 0; i < 1000; ++i) right.send(receive_text(right));
    });
    for (int i = 0; i < 1000; ++i) {
      left.send(std::to_string(i));
      ASSERT_EQ(receive_text(left), std::to_string(i));
    }
    echo.get();
  });
}

TEST_P(Udp, ManySendersReachOneReceiver) {
  in_runtime([] {
    constexpr int senders = 20, each = 50;
    auto receiver = bounded();
    receiver.set_receive_buffer(1 << 20);
    task_group sending;
    for (int i = 0; i < senders; ++i)
      sending.spawn([&, i] {
        auto sender = bounded();
        char answer;
        for (int k = 0; k < each; ++k) {  // one at a time, so that none is dropped
          sender.send_to(std::to_string(i * each + k), receiver.local_endpoint());
          ASSERT_EQ(sender.receive(&answer, 1), 1u);
        }
      });
    std::set<std::string> seen;
    for (int i = 0; i < senders * each; ++i) {
      char text[10];
      net::endpoint from;
      const std::size_t size = receiver.receive_from(text, sizeof text, from);
      EXPECT_TRUE(seen.insert(std::string(text, size)).second);
      receiver.send_to("k", from);
    }
    sending.wait();
    EXPECT_EQ(seen.size(), std::size_t{senders} * each);
  });
}

TEST_P(Udp, ConnectedSocketHearsItsPeerOnly) {
  everywhere([] {
    auto left = bounded(), right = bounded(), stranger = bounded();
    right.connect(left.local_endpoint());
    EXPECT_EQ(right.remote_endpoint(), left.local_endpoint());
    stranger.send_to("stranger", right.local_endpoint());
    left.send_to("peer", right.local_endpoint());
    EXPECT_EQ(receive_text(right), "peer");
    right.connect(stranger.local_endpoint());
    stranger.send_to("stranger", right.local_endpoint());
    EXPECT_EQ(receive_text(right), "stranger");
  });
}

TEST_P(Udp, ConnectMakesASocketOfNone) {
  everywhere([] {
    auto server = bounded();
    net::udp_socket client;
    client.connect(server.local_endpoint());
    client.expires_after(bound);
    client.send("hello");
    char text[5];
    net::endpoint from;
    EXPECT_EQ(server.receive_from(text, 5, from), 5u);
    EXPECT_EQ(from, client.local_endpoint());
    server.send_to("there", from);
    EXPECT_EQ(receive_text(client), "there");
    client.close();
    EXPECT_EQ(code_of([&] { client.connect(server.local_endpoint()); }), std::errc::bad_file_descriptor);
  });
}

TEST_P(Udp, NobodyAtThePeersPortIsAnError) {
  everywhere([] {
    const deserted_port nobody;
    auto client = bounded();
    client.connect(nobody.at);
    client.send("is there anybody?");
    EXPECT_EQ(receive_code(client), std::errc::connection_refused);
    auto server = bounded();
    client.connect(server.local_endpoint());
    client.send("and here?");
    EXPECT_EQ(receive_text(server), "and here?") << "the error is told once";
  });
}

TEST_P(Udp, ARefusalWakesAWaitingReceiver) {
  in_runtime([] {
    const deserted_port nobody;
    for (int i = 0; i < 20; ++i) {
      auto client = bounded();
      client.connect(nobody.at);
      auto receiver = spawn([&] { return receive_code(client); });
      if (i % 2) let_others_run();
      client.send("is there anybody?");
      EXPECT_EQ(receiver.get(), std::errc::connection_refused);
    }
  });
}

TEST_P(Udp, WhatCannotBeSentIsAnError) {
  everywhere([] {
    auto socket = bounded();
    EXPECT_EQ(code_of([&] { socket.send("x"); }), std::errc::destination_address_required);
    EXPECT_EQ(code_of([&] { socket.send_to("x", net::endpoint()); }), std::errc::invalid_argument);
    const std::string much(70'000, 'x');
    EXPECT_EQ(code_of([&] { socket.send_to(much, socket.local_endpoint()); }), std::errc::message_size);
    std::error_code error;
    socket.send_to(much, socket.local_endpoint(), error);
    EXPECT_EQ(error, std::errc::message_size);
    const auto everybody = net::endpoint::ip("127.255.255.255", socket.local_endpoint().port());
    EXPECT_EQ(code_of([&] { socket.send_to("x", everybody); }), std::errc::permission_denied);
    net::udp_socket(loopback(), {.broadcast = true}).send_to("x", everybody);
    socket.send_to("itself", socket.local_endpoint());
    EXPECT_EQ(receive_text(socket), "itself");
  });
}

TEST_P(Udp, BindingTwiceIsAnErrorThatNamesTheEndpoint) {
  in_runtime([] {
    auto first = bounded();
    try {
      net::udp_socket second(first.local_endpoint());
      FAIL() << "bound twice";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::address_in_use);
      EXPECT_NE(std::string(error.what()).find(first.local_endpoint().str()), std::string::npos) << error.what();
    }
    const net::udp_options shared{.reuse_port = true};
    net::udp_socket third(loopback(), shared);
    net::udp_socket fourth(third.local_endpoint(), shared);
    EXPECT_EQ(fourth.local_endpoint(), third.local_endpoint());
  });
}

int option(const net::udp_socket& of, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(of.native_handle(), SOL_SOCKET, name, &value, &size), 0);
  return value;
}

TEST_P(Udp, OptionsAreSet) {
  in_runtime([] {
    net::udp_socket socket(loopback(), {.broadcast = true});
    EXPECT_EQ(option(socket, SO_BROADCAST), 1);
    socket.set_receive_buffer(20'000);
    socket.set_send_buffer(30'000);
    EXPECT_EQ(option(socket, SO_RCVBUF), 40'000) << "the system doubles it";
    EXPECT_EQ(option(socket, SO_SNDBUF), 60'000);
    socket.close();
    EXPECT_EQ(code_of([&] { socket.set_send_buffer(30'000); }), std::errc::bad_file_descriptor);
  });
}

}  // namespace
}  // namespace ulexite::test
