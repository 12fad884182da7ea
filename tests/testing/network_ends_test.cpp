// How connections and listeners of the simulated network end. The order of what is read was measured on Linux.

#include <ulexite.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <string>
#include <system_error>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
namespace ut = ulexite::testing;
using ut::explore;

const net::endpoint server_at = net::endpoint::ip("10.0.0.1", 7000);
const net::endpoint path_at = net::endpoint::local("/nowhere/at/all");

// The text of all reads up to the end of the stream, with "!" for a connection_reset.
std::string read_to_the_end(net::tcp_stream& from) {
  std::string got;
  for (;;) {
    char data[4];
    std::error_code error;
    const std::size_t more = from.read_some(data, sizeof data, error);
    if (more == 0 && error != std::errc::connection_reset) return error ? got + error.message() : got;
    got += error ? "!" : std::string(data, more);
  }
}

std::error_code write_one(net::tcp_stream& to) {
  std::error_code error;
  to.write("x", 1, error);
  return error;
}

std::error_code error_of_connect(const net::endpoint& to) {
  std::error_code error;
  static_cast<void>(net::tcp_stream::connect(to, {}, error));
  return error;
}

// A client and its server's end.
std::pair<net::tcp_stream, net::tcp_stream> connected(const net::endpoint& at) {
  net::tcp_listener listener(at);
  auto client = net::tcp_stream::connect(at);
  return {std::move(client), listener.accept()};
}

TEST(NetworkEnds, DataBeforeAResetIsReadFirst) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    auto [one, two] = ut::stream_pair();
    two.write("answer", 6);
    two.abort();
    EXPECT_EQ(read_to_the_end(one), "answer!");
    EXPECT_EQ(write_one(one), std::errc::broken_pipe);
  });
}

TEST(NetworkEnds, AWriterThatIsToldOfTheResetLeavesTheDataToTheReader) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    auto [one, two] = ut::stream_pair();
    two.write("answer", 6);
    two.abort();
    EXPECT_EQ(write_one(one), std::errc::connection_reset);
    EXPECT_EQ(write_one(one), std::errc::broken_pipe);
    EXPECT_EQ(read_to_the_end(one), "answer");
  });
}

TEST(NetworkEnds, AfterTheEndAResetIsNoErrorOfReads) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    auto [one, two] = ut::stream_pair();
    two.write("answer", 6);
    two.close();
    EXPECT_FALSE(write_one(one));  // draws a reset
    EXPECT_EQ(read_to_the_end(one), "answer");
    EXPECT_EQ(write_one(one), std::errc::broken_pipe);
  });
}

TEST(NetworkEnds, DataThatIsUnderWayAtAResetIsLost) {
  explore({.schedules = 20, .slowness = 0ns, .network = {.latency = 10ms}}, [] {
    net::tcp_listener listener(server_at);
    auto one = net::tcp_stream::connect(server_at);
    auto two = listener.accept();
    two.write("an", 2);
    this_fiber::sleep_for(10ms);
    two.write("swer", 4);
    EXPECT_EQ(ut::reset_connections(server_at), 1u);
    EXPECT_EQ(ut::reset_connections(server_at), 0u);
    this_fiber::sleep_for(20ms);
    EXPECT_EQ(read_to_the_end(one), "an!");
  });
}

TEST(NetworkEnds, AConnectionWithOneOpenEndCountsAsReset) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    net::tcp_listener listener(server_at);
    auto one = net::tcp_stream::connect(server_at), three = net::tcp_stream::connect(server_at);
    auto two = listener.accept(), four = listener.accept();
    two.close();
    EXPECT_EQ(ut::reset_connections(server_at), 2u);
    EXPECT_EQ(ut::reset_connections(server_at), 0u);
  });
}

TEST(NetworkEnds, AResetIsReportedToAReaderThatHasShutItsReading) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    auto [one, two] = ut::stream_pair();
    one.shutdown_read();
    two.abort();
    EXPECT_EQ(read_to_the_end(one), "!");
  });
}

// ---- listeners ----

TEST(NetworkEnds, AClosedListenerRefusesWhileItsAcceptorHasNotLeft) {
  for (const net::endpoint& at : {server_at, path_at})
    explore({.schedules = 100, .slowness = 0ns}, [&] {
      net::tcp_listener listener(at);
      task_group acceptor;
      acceptor.spawn([&] {
        std::error_code error;
        static_cast<void>(listener.accept(error));
        EXPECT_EQ(error, std::errc::bad_file_descriptor);
      });
      this_fiber::sleep_for(1ms);
      listener.close();
      EXPECT_EQ(error_of_connect(at), std::errc::connection_refused);
      net::tcp_listener again(at);
      EXPECT_FALSE(error_of_connect(at));
      acceptor.wait();
    });
}

TEST(NetworkEnds, ACloseRefusesTheBacklogWhileTheAcceptorHasNotLeft) {
  explore({.schedules = 200, .slowness = 0ns}, [] {
    net::tcp_listener listener(server_at);
    bool was_accepted = false;
    task_group acceptor;
    acceptor.spawn([&] {
      std::error_code error;
      const auto accepted = listener.accept(error);
      was_accepted = !error;
    });
    this_fiber::sleep_for(1ms);
    auto client = net::tcp_stream::connect(server_at);
    listener.close();
    const std::error_code error = write_one(client);
    acceptor.wait();
    if (!was_accepted) {
      EXPECT_EQ(error, std::errc::connection_reset);
    }
  });
}

TEST(NetworkEnds, AConnectUnderWayToAListenerThatClosesIsRefused) {
  explore({.schedules = 50, .slowness = 0ns, .network = {.latency = 50ms}}, [] {
    net::tcp_listener listener(server_at);
    task_group all;
    all.spawn([&] {
      std::error_code error;
      static_cast<void>(listener.accept(error));
      EXPECT_EQ(error, std::errc::bad_file_descriptor);
    });
    all.spawn([&] { EXPECT_EQ(error_of_connect(server_at), std::errc::connection_refused); });
    this_fiber::sleep_for(10ms);
    listener.close();
    all.wait();
  });
}

// Two listeners, one for each address, and whether the second may listen.
bool may_both_listen(const char* first, const char* second, bool reuse_port = false) {
  const net::listen_options options{.reuse_port = reuse_port};
  const net::tcp_listener one(net::endpoint::parse(first), options);
  try {
    const net::tcp_listener two(net::endpoint::parse(second), options);
    return true;
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::address_in_use);
    return false;
  }
}

TEST(NetworkEnds, AddressesInUseAreThoseOfLinux) {
  explore({.schedules = 2, .slowness = 0ns}, [] {
    EXPECT_FALSE(may_both_listen("127.0.0.1:80", "127.0.0.1:80"));
    EXPECT_FALSE(may_both_listen("0.0.0.0:80", "127.0.0.1:80"));
    EXPECT_FALSE(may_both_listen("127.0.0.1:80", "0.0.0.0:80"));
    EXPECT_FALSE(may_both_listen("0.0.0.0:80", "[::]:80"));
    EXPECT_TRUE(may_both_listen("127.0.0.1:80", "127.0.0.2:80"));
    EXPECT_TRUE(may_both_listen("127.0.0.1:80", "127.0.0.1:81"));
    EXPECT_TRUE(may_both_listen("0.0.0.0:80", "[::1]:80"));
    EXPECT_TRUE(may_both_listen("127.0.0.1:80", "127.0.0.1:80", true));
  });
}

TEST(NetworkEnds, ListenersThatShareAPortShareItsConnections) {
  bool reached[2] = {false, false};
  explore({.schedules = 50, .slowness = 0ns}, [&] {
    net::tcp_listener one(server_at, {.reuse_port = true}), two(server_at, {.reuse_port = true});
    task_group acceptors;
    for (net::tcp_listener* each : {&one, &two})
      acceptors.spawn([&, each] {
        std::error_code error;
        static_cast<void>(each->accept(error));
        if (!error) reached[each == &two] = true;
      });
    EXPECT_FALSE(error_of_connect(server_at));
    one.close();
    two.close();
    acceptors.wait();
  });
  EXPECT_TRUE(reached[0] && reached[1]);
}

// ---- Unix sockets ----

TEST(NetworkEnds, AbortOfAUnixSocketWorksAsClose) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    auto [client, server] = connected(path_at);
    server.write("answer", 6);
    server.abort();
    EXPECT_EQ(read_to_the_end(client), "answer");
  });
}

TEST(NetworkEnds, UnreadDataOfAUnixSocketIsAResetOfReadsOnly) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    auto [client, server] = connected(path_at);
    client.write("question", 8);
    server.write("answer", 6);
    server.close();
    EXPECT_EQ(write_one(client), std::errc::broken_pipe);
    EXPECT_EQ(read_to_the_end(client), "answer!");
  });
}

TEST(NetworkEnds, AWriteToAUnixSocketThatWasClosedFailsAtOnce) {
  explore({.schedules = 20, .slowness = 0ns, .network = {.latency = 10ms}}, [] {
    auto [client, server] = connected(path_at);
    server.close();
    EXPECT_EQ(write_one(client), std::errc::broken_pipe);
  });
}

TEST(NetworkEnds, AWriteToAUnixSocketThatReadsNoMoreFails) {
  explore({.schedules = 100, .slowness = 0ns, .network = {.buffer = 4}}, [] {
    auto [client, server] = connected(path_at);
    task_group writer;
    writer.spawn([&, &to = client] {
      std::error_code error;
      to.write("12345678", 8, error);  // waits for room
      EXPECT_EQ(error, std::errc::broken_pipe);
    });
    this_fiber::sleep_for(1ms);
    server.shutdown_read();
    writer.wait();
    EXPECT_EQ(read_to_the_end(server), "1234");
    server.write("x", 1);
    char data;
    EXPECT_EQ(client.read_some(&data, 1), 1u);
  });
}

TEST(NetworkEnds, ASocketTellsItsFamily) {
  explore({.schedules = 1, .slowness = 0ns}, [] {
    auto [client, server] = connected(path_at);
    EXPECT_EQ(client.option(SOL_SOCKET, SO_DOMAIN), AF_UNIX);
    EXPECT_EQ(server.option(SOL_SOCKET, SO_DOMAIN), AF_UNIX);
    EXPECT_THROW(static_cast<void>(net::credentials_of_peer(client)), std::system_error);
    auto [one, two] = ut::stream_pair();
    EXPECT_EQ(one.option(SOL_SOCKET, SO_DOMAIN), AF_INET);
  });
}

TEST(NetworkEnds, BytesAndConnectsThatAPartitionHeldFindClosedSockets) {
  explore({.schedules = 50, .slowness = 0ns, .network = {.buffer = 4}}, [] {
    net::tcp_listener listener(server_at);
    auto stream = net::tcp_stream::connect(server_at);
    auto accepted = listener.accept();
    ut::partition(server_at);
    task_group all;
    all.spawn([&] {
      std::error_code error;
      stream.write("12345678", 8, error);
      EXPECT_EQ(error, std::errc::connection_reset);
    });
    all.spawn([&] {
      std::error_code error;
      auto late = net::tcp_stream::connect(server_at, {}, error);
      char data;
      if (!error) late.read_some(&data, 1, error);
      EXPECT_TRUE(error);
    });
    this_fiber::sleep_for(1s);
    accepted.close();
    listener.close();
    ut::heal(server_at);
    all.wait();
  });
}

TEST(NetworkEnds, AnEndOfListeningIsHeldByAPartition) {
  ut::run_with_virtual_time([] {
    net::tcp_listener listener(server_at);
    auto waiting = net::tcp_stream::connect(server_at);
    ut::partition(server_at);
    listener.close();
    char data;
    std::error_code error;
    waiting.expires_after(1s);
    EXPECT_EQ(waiting.read_some(&data, 1, error), 0U);
    EXPECT_EQ(error, std::errc::timed_out);
    ut::heal(server_at);
    waiting.expires_never();
    EXPECT_EQ(waiting.read_some(&data, 1, error), 0U);
    EXPECT_EQ(error, std::errc::connection_reset);
  });
}

}  // namespace
