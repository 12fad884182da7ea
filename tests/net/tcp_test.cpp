// Streams and listeners: connecting, reading, writing.

#include "net_fixture.hpp"
#include "support/watchdog.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <thread>

namespace ulexite::test {
namespace {

class Tcp : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(Tcp);

// Echoes each connection until its end, until the listener is closed.
void echo_all(net::tcp_listener& listener) {
  std::error_code error;
  for (;;) {
    auto peer = listener.accept(error);
    if (error) return;
    spawn([peer = std::move(peer)]() mutable {
      char buffer[4096];
      while (const std::size_t got = peer.read_some(buffer, sizeof buffer)) peer.write(buffer, got);
    }).detach();
  }
}

void expect_echoes(net::tcp_stream& stream, int count) {
  char answer[6] = "";
  for (int i = 0; i < count; ++i) {
    stream.write("hello");
    ASSERT_EQ(stream.read(answer, 5), 5u);
    ASSERT_STREQ(answer, "hello");
  }
}

void expect_echo_at(const net::endpoint& at) {
  net::tcp_listener listener(at);
  auto server = spawn([&] { echo_all(listener); });
  {
    auto client = net::tcp_stream::connect(listener.local_endpoint(), {.timeout = bound});
    client.expires_after(bound);
    EXPECT_EQ(client.remote_endpoint(), listener.local_endpoint());
    expect_echoes(client, 100);
    client.shutdown_write();
    char c;
    EXPECT_EQ(client.read_some(&c, 1), 0u);
    EXPECT_EQ(client.read_some(&c, 1), 0u) << "the end stays";
  }
  listener.close();
  server.get();
}

TEST_P(Tcp, EchoesOverIpv4) {
  in_runtime([] { expect_echo_at(loopback()); });
}

TEST_P(Tcp, EchoesOverIpv6) {
  in_runtime([] {
    const auto at = net::endpoint::parse("[::1]:0");
    if (code_of([&] { net::tcp_listener probe(at); })) GTEST_SKIP() << "no IPv6 here";
    expect_echo_at(at);
  });
}

TEST_P(Tcp, EchoesOverUnixSockets) {
  const std::string path = scratch_path("echo");
  in_runtime([&] {
    expect_echo_at(net::endpoint::local(path));
    EXPECT_NE(::access(path.c_str(), F_OK), 0) << "the listener's close removes its path";
    expect_echo_at(net::endpoint::local("@" + path));
  });
}

TEST_P(Tcp, TwoHundredClientsAtOnce) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    auto server = spawn([&] { echo_all(listener); });
    std::vector<join_handle<>> clients;
    for (int i = 0; i < 200; ++i) {
      clients.push_back(spawn([&] {
        auto client = net::tcp_stream::connect(listener.local_endpoint());
        client.expires_after(bound);
        expect_echoes(client, 20);
      }));
    }
    for (auto& client : clients) client.get();
    listener.close();
    server.get();
  });
}

TEST_P(Tcp, SilentClientsAndBusyOnesDoNotDisturbEachOther) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    auto server = spawn([&] { echo_all(listener); });
    std::vector<net::tcp_stream> silent;
    for (int i = 0; i < 50; ++i) silent.push_back(net::tcp_stream::connect(listener.local_endpoint()));
    auto busy = net::tcp_stream::connect(listener.local_endpoint());
    expect_echoes(busy, 500);
    for (auto& each : silent) expect_echoes(each, 1);
    listener.close();
    server.get();
  });
}

std::uint64_t fold(std::uint64_t sum, const std::vector<unsigned char>& block, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) sum = sum * 31 + block[i];
  return sum;
}

constexpr std::size_t large = std::size_t{sanitized ? 16 : 64} << 20;  // more than both sockets hold

std::uint64_t send_large(net::tcp_stream& to, unsigned seed) {
  std::vector<unsigned char> block(100'003);
  std::uint64_t sum = 0;
  for (std::size_t sent = 0; sent < large;) {
    for (auto& byte : block) byte = static_cast<unsigned char>(seed = seed * 1664525 + 1013904223 + (seed >> 16));
    const std::size_t part = std::min(block.size(), large - sent);
    to.write(block.data(), part);
    sum = fold(sum, block, part);
    sent += part;
  }
  to.shutdown_write();
  return sum;
}

std::uint64_t receive_large(net::tcp_stream& from) {
  std::vector<unsigned char> block(70'001);
  std::uint64_t sum = 0;
  std::size_t total = 0;
  while (const std::size_t got = from.read_some(block.data(), block.size())) {
    sum = fold(sum, block, got);
    total += got;
  }
  EXPECT_EQ(total, large);
  return sum;
}

TEST_P(Tcp, LargeTransferInBothDirections) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    pair.left.expires_never();
    pair.right.expires_never();
    auto left_in = spawn([&] { return receive_large(pair.left); });
    auto right_in = spawn([&] { return receive_large(pair.right); });
    auto left_out = spawn([&] { return send_large(pair.left, 1); });
    auto right_out = spawn([&] { return send_large(pair.right, 2); });
    EXPECT_EQ(left_out.get(), right_in.get());
    EXPECT_EQ(right_out.get(), left_in.get());
  });
}

TEST_P(Tcp, OneByteAtATime) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto writer = spawn([&] {
      for (int i = 0; i < 2000; ++i) {
        const char c = static_cast<char>('a' + i % 26);
        EXPECT_EQ(pair.left.write_some(&c, 1), 1u);
      }
      pair.left.shutdown_write();
    });
    for (int i = 0; i < 2000; ++i) {
      char c = 0;
      ASSERT_EQ(pair.right.read(&c, 1), 1u);
      ASSERT_EQ(c, static_cast<char>('a' + i % 26));
    }
    EXPECT_EQ(read_all(pair.right), "");
    writer.get();
  });
}

TEST_P(Tcp, HalfClosedConnectionStillAnswers) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto server = spawn([&] {
      const std::string question = read_all(pair.right);
      pair.right.write(question + "!");
      pair.right.close();
    });
    pair.left.write("hello");
    pair.left.shutdown_write();
    EXPECT_EQ(read_all(pair.left), "hello!");
    EXPECT_EQ(code_of([&] { pair.left.write("x"); }), std::errc::broken_pipe);
    server.get();
  });
}

// Data and end in one edge: the short read must not make the next one wait.
TEST_P(Tcp, EndRightBehindTheDataIsSeen) {
  in_runtime([] {
    for (int i = 0; i < 200; ++i) {
      auto pair = i % 2 ? stream_pair::unix_sockets() : stream_pair::tcp();
      auto reader = spawn([&] {
        char buffer[100];
        EXPECT_EQ(pair.right.read(buffer, 5), 5u);
        pair.right.write("answer");
        return read_all(pair.right);
      });
      pair.left.write("hello");
      char answer[6];
      EXPECT_EQ(pair.left.read(answer, 6), 6u);
      pair.left.write("bye");
      pair.left.shutdown_write();
      EXPECT_EQ(reader.get(), "bye");
    }
  });
}

// So too a reset right behind the data.
TEST_P(Tcp, ResetRightBehindTheDataIsSeen) {
  in_runtime([] {
    for (int i = 0; i < 200; ++i) {
      auto pair = stream_pair::tcp();
      auto reader = spawn([&] {
        char buffer[100];
        std::error_code error;
        while (pair.right.read_some(buffer, sizeof buffer, error) != 0) {
        }
        return error;
      });
      if (i % 2) let_others_run();
      pair.left.write("hello");
      pair.left.abort();
      EXPECT_EQ(reader.get(), std::errc::connection_reset);
    }
  });
}

TEST_P(Tcp, WritevSendsEverythingInOrder) {
  in_runtime([] {
    auto pair = stream_pair::unix_sockets();
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < 300; ++i) parts.push_back(std::string(i * 7 % 5000, static_cast<char>('a' + i % 26)));
    std::vector<iovec> buffers;
    for (auto& part : parts) buffers.push_back({part.data(), part.size()});
    auto writer = spawn([&] {
      pair.left.writev(buffers);
      std::error_code error;
      EXPECT_EQ(pair.left.writev({}, error), 0u);
      pair.left.shutdown_write();
    });
    EXPECT_EQ(read_all(pair.right), std::accumulate(parts.begin(), parts.end(), std::string()));
    writer.get();
  });
}

TEST_P(Tcp, ReadsIntoSeveralBuffers) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    pair.left.write("abcdef");
    char first[2], second[10];
    const std::array<iovec, 2> into{iovec{first, 2}, iovec{second, 10}};
    std::error_code error;
    EXPECT_EQ(pair.right.read_some(into, error), 6u);
    EXPECT_EQ(std::string(first, 2) + std::string(second, 4), "abcdef");
  });
}

TEST_P(Tcp, SizeZeroNeverWaits) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    EXPECT_EQ(pair.left.read_some(nullptr, 0), 0u);
    EXPECT_EQ(pair.left.read(nullptr, 0), 0u);
    EXPECT_EQ(pair.left.write_some(nullptr, 0), 0u);
    pair.left.write("");
  });
}

TEST(TcpOnPlainThreads, Echoes) {
  net::tcp_listener listener(loopback());
  std::thread server([&] {
    auto peer = listener.accept();
    char buffer[100];
    while (const std::size_t got = peer.read_some(buffer, sizeof buffer)) peer.write(buffer, got);
  });
  auto client = net::tcp_stream::connect(listener.local_endpoint(), {.timeout = bound});
  expect_echoes(client, 100);
  client.expires_after(10ms);
  char c;
  EXPECT_EQ(code_of([&] { client.read_some(&c, 1); }), std::errc::timed_out);
  client.close();
  server.join();
}

TEST(TcpOnPlainThreads, TalkToFibers) {
  runtime rt({.threads = 2});
  net::tcp_listener listener(loopback());
  auto server = rt.spawn([&] { echo_all(listener); });
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      auto client = net::tcp_stream::connect(listener.local_endpoint());
      client.expires_after(bound);
      expect_echoes(client, 100);
    });
  }
  for (auto& client : clients) client.join();
  listener.close();
  server.get();
  rt.shutdown(shutdown_mode::drain);
  EXPECT_EQ(rt.metrics().lost_wakeups, 0u);
}

TEST_P(Tcp, OperationsOfNoBytesFailToo) {
  in_runtime([] {
    stream_pair pair = stream_pair::tcp();
    net::tcp_stream& stream = pair.left;
    std::error_code error;
    char byte;
    const std::array operations = std::to_array<std::function<void(std::error_code&)>>({
        [&](std::error_code& e) { stream.read_some(&byte, 0, e); },
        [&](std::error_code& e) { stream.read(&byte, 0, e); },
        [&](std::error_code& e) { stream.peek(&byte, 0, e); },
        [&](std::error_code& e) { stream.write_some(&byte, 0, e); },
        [&](std::error_code& e) { stream.write("", e); },
        [&](std::error_code& e) { stream.writev({}, e); },
    });
    for (const auto& each : operations) {
      each(error);
      EXPECT_FALSE(error);
    }
    stream.close();
    for (const auto& each : operations) {
      each(error);
      EXPECT_EQ(error, std::errc::bad_file_descriptor) << &each - operations.data();
    }
  });
}

}  // namespace
}  // namespace ulexite::test
