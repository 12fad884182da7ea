#include <ulexite.hpp>
#include <ulexite/testing/explore.hpp>
#include <ulexite/testing/gtest.hpp>

#include <set>
#include <string>

namespace {

using namespace ulexite;
using namespace std::chrono_literals;
namespace ut = ulexite::testing;
using ut::explore;
using ut::find_failure;

const net::endpoint server_at = net::endpoint::ip("10.0.0.1", 7000);

// Echoes on each connection until its end.
void echo(net::tcp_stream& stream) {
  char data[64];
  std::error_code error;
  for (std::size_t got; (got = stream.read_some(data, sizeof data, error)) > 0 && !error;)
    stream.write(data, got, error);
}

void accept_and_echo(net::tcp_listener& listener) {
  auto accepted = listener.accept();
  echo(accepted);
}

std::string exchange(net::tcp_stream& stream, const std::string& text) {
  stream.write(text.data(), text.size());
  std::string answer(text.size(), '\0');
  answer.resize(stream.read(answer.data(), answer.size()));
  return answer;
}

TEST(Network, AServerAnswersItsClients) {
  for (const ut::network_options& network : {ut::network_options{}, ut::network_options{.latency = 5ms, .jitter = 10ms},
                                             ut::network_options{.short_reads = true},
                                             ut::network_options{.latency = 1ms, .short_reads = true, .buffer = 16}}) {
    explore({.schedules = 300, .slowness = 0ns, .network = network}, [] {
      net::tcp_listener listener(server_at);
      task_group server;
      server.spawn([&] {
        task_group connections;
        listener.serve(connections, echo);
      });
      task_group clients;
      for (int i = 0; i < 2; ++i)
        clients.spawn([&, i] {
          auto stream = net::tcp_stream::connect(server_at);
          EXPECT_EQ(stream.remote_endpoint(), server_at);
          for (int k = 0; k < 2; ++k) {
            const std::string text = "message " + std::to_string(10 * i + k);
            EXPECT_EQ(exchange(stream, text), text);
          }
        });
      clients.wait();
      listener.close();
      server.wait();
    });
  }
}

TEST(Network, LatencyIsVirtualTime) {
  explore({.schedules = 50, .slowness = 0ns, .network = {.latency = 10s}}, [] {
    auto [one, two] = ut::stream_pair();
    const auto begin = steady_clock::now();
    task_group all;
    all.spawn([&, &to = two] { EXPECT_EQ(exchange(to, "abc"), "xyz"); });
    char data[3];
    EXPECT_EQ(one.read(data, 3), 3u);
    EXPECT_EQ(std::string(data, 3), "abc");
    EXPECT_EQ(steady_clock::now() - begin, 10s);
    one.write("xyz", 3);
    all.wait();
    EXPECT_EQ(steady_clock::now() - begin, 20s);
  });
}

TEST(Network, AConnectionToNobodyIsRefused) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    std::error_code error;
    static_cast<void>(net::tcp_stream::connect(server_at, {}, error));
    EXPECT_EQ(error, std::errc::connection_refused);
  });
}

TEST(Network, AnEndIsSeenAfterTheDataBeforeIt) {
  explore({.schedules = 200, .slowness = 0ns, .network = {.jitter = 1ms, .short_reads = true}}, [] {
    auto [one, two] = ut::stream_pair();
    task_group all;
    all.spawn([&, &from = one] {
      from.write("all of it", 9);
      from.close();
    });
    std::string got;
    char data[4];
    while (const std::size_t more = two.read_some(data, sizeof data)) got.append(data, more);
    EXPECT_EQ(got, "all of it");
    all.wait();
  });
}

TEST(Network, AWriterWaitsForRoom) {
  explore({.schedules = 100, .slowness = 0ns, .network = {.buffer = 10}}, [] {
    auto [one, two] = ut::stream_pair();
    bool written = false;
    task_group all;
    all.spawn([&, &to = one] {
      to.write(std::string(25, 'x').data(), 25);
      written = true;
    });
    this_fiber::sleep_for(1s);
    EXPECT_FALSE(written);
    char data[25];
    EXPECT_EQ(two.read(data, 25), 25u);
    all.wait();
  });
}

TEST(Network, UnreadDataMakesTheCloseAReset) {
  explore({.schedules = 50, .slowness = 0ns}, [] {
    auto [one, two] = ut::stream_pair();
    one.write("x", 1);
    two.close();
    char data;
    std::error_code error;
    one.read_some(&data, 1, error);
    EXPECT_EQ(error, std::errc::connection_reset);
  });
}

TEST(Network, BytesForAClosedSocketAreAnsweredByAReset) {
  explore({.schedules = 50, .slowness = 0ns, .network = {.latency = 50ms, .buffer = 4}}, [] {
    auto [one, two] = ut::stream_pair();
    task_group all;
    all.spawn([&, &to = one] {
      std::error_code error;
      to.write("12345678", 8, error);            // waits for room
      EXPECT_EQ(error, std::errc::broken_pipe);  // as on Linux, because the end of the stream came before the reset
    });
    this_fiber::sleep_for(10ms);
    two.close();
    all.wait();
  });
}

TEST(Network, APartitionHoldsWhatIsSent) {
  explore({.schedules = 100, .slowness = 0ns}, [] {
    net::tcp_listener listener(server_at);
    task_group all;
    all.spawn([&] { accept_and_echo(listener); });
    {
      auto stream = net::tcp_stream::connect(server_at);
      EXPECT_EQ(exchange(stream, "before"), "before");
      ut::partition(server_at);
      stream.write("during", 6);
      stream.reads_expire_after(1min);
      char data[6];
      std::error_code error;
      EXPECT_EQ(stream.read(data, 6, error), 0u);
      EXPECT_EQ(error, std::errc::timed_out);
      static_cast<void>(net::tcp_stream::connect(server_at, {.timeout = 1s}, error));
      EXPECT_EQ(error, std::errc::timed_out);
      ut::heal(server_at);
      stream.reads_expire_never();
      EXPECT_EQ(stream.read(data, 6), 6u);
      EXPECT_EQ(std::string(data, 6), "during");
    }
    all.wait();
  });
}

TEST(Network, APartitionHoldsWhatIsUnderWay) {
  explore({.schedules = 50, .slowness = 0ns, .network = {.latency = 50ms}}, [] {
    net::tcp_listener listener(server_at);
    auto stream = net::tcp_stream::connect(server_at);
    auto accepted = listener.accept();
    stream.write("1", 1);
    this_fiber::sleep_for(10ms);
    stream.write("23", 2);
    ut::partition(server_at);
    accepted.reads_expire_after(1h);
    char data[4];
    std::error_code error;
    EXPECT_EQ(accepted.read(data, 4, error), 0u);
    EXPECT_EQ(error, std::errc::timed_out);
    stream.write("4", 1);
    ut::heal(server_at);
    accepted.reads_expire_never();
    EXPECT_EQ(accepted.read(data, 4), 4u);
    EXPECT_EQ(std::string(data, 4), "1234");
  });
}

TEST(Network, AListenerAtAllAddressesTakesItsOwnFamily) {
  explore({.schedules = 2, .slowness = 0ns}, [] {
    const auto reaches = [](const char* at, const char* to) {
      const net::tcp_listener listener(net::endpoint::parse(at));
      std::error_code error;
      static_cast<void>(net::tcp_stream::connect(net::endpoint::parse(to), {}, error));
      return !error;
    };
    EXPECT_TRUE(reaches("0.0.0.0:80", "10.0.0.1:80"));
    EXPECT_FALSE(reaches("0.0.0.0:80", "[::1]:80"));
    EXPECT_TRUE(reaches("[::]:80", "[::1]:80"));
    EXPECT_TRUE(reaches("[::]:80", "10.0.0.1:80"));
  });
}

// For a second no connect reaches the server.
void expect_that_a_partition_cuts_it_off() {
  ut::partition(server_at);
  std::error_code error;
  static_cast<void>(net::tcp_stream::connect(server_at, {.timeout = 1s}, error));
  EXPECT_EQ(error, std::errc::timed_out);
  ut::heal(server_at);
}

TEST(Network, AListenerAtAllAddressesIsNamedByOneOfThem) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    const net::tcp_listener listener(net::endpoint::ip("0.0.0.0", 7000));
    expect_that_a_partition_cuts_it_off();
    auto stream = net::tcp_stream::connect(server_at);
    EXPECT_EQ(ut::reset_connections(server_at), 1u);
  });
}

TEST(Network, ReportsDescribeItsSockets) {
  const auto found = find_failure({.schedules = 1, .slowness = 0ns}, [] {
    net::tcp_listener listener(server_at);
    spawn([&] { accept_and_echo(listener); }).join();
  });
  ASSERT_TRUE(found.failure);
  EXPECT_NE(found.failure->report.find("(TCP, listens at 10.0.0.1:7000)"), std::string::npos) << found.failure->report;
}

// A server that accepts one connection, and expects that its client has given it up.
void accept_a_reset(net::tcp_listener& listener) {
  auto accepted = listener.accept();
  char data;
  std::error_code error;
  accepted.read_some(&data, 1, error);
  EXPECT_EQ(error, std::errc::connection_reset);
}

TEST(Network, AConnectThatIsGivenUpIsAReset) {
  for (const bool cancel : {false, true}) {
    explore({.schedules = 50, .slowness = 0ns, .network = {.latency = 50ms, .jitter = 20ms}}, [&] {
      net::tcp_listener listener(server_at);
      task_group all;
      all.spawn([&] { accept_a_reset(listener); });
      auto client = spawn([&] {
        std::error_code error;
        static_cast<void>(net::tcp_stream::connect(server_at, {.timeout = cancel ? 1h : 10ms}, error));
        EXPECT_TRUE(error);
      });
      this_fiber::sleep_for(10ms);
      if (cancel) client.request_stop();
      client.join();
      all.wait();
    });
  }
}

TEST(Network, AConnectThatIsGivenUpBehindAPartitionIsAReset) {
  explore({.schedules = 50, .slowness = 0ns}, [] {
    net::tcp_listener listener(server_at);
    task_group all;
    all.spawn([&] {
      accept_a_reset(listener);
      accept_and_echo(listener);
    });
    expect_that_a_partition_cuts_it_off();
    {
      auto stream = net::tcp_stream::connect(server_at);
      EXPECT_EQ(exchange(stream, "hello"), "hello");
    }
    all.wait();
  });
}

TEST(Network, ConnectionsAreResetOnRequest) {
  explore({.schedules = 100, .slowness = 0ns}, [] {
    net::tcp_listener listener(server_at);
    task_group all;
    all.spawn([&] { accept_and_echo(listener); });
    auto stream = net::tcp_stream::connect(server_at);
    EXPECT_EQ(exchange(stream, "hello"), "hello");
    EXPECT_EQ(ut::reset_connections(server_at), 1u);
    char data;
    std::error_code error;
    stream.read_some(&data, 1, error);
    EXPECT_EQ(error, std::errc::connection_reset);
    all.wait();
  });
}

// A client that believes a write to be an answer: only a reset shows it.
TEST(Network, ResetsAreChosenByTheStrategy) {
  const auto body = [] {
    auto [one, two] = ut::stream_pair();
    std::error_code error;
    one.write("order", 5, error);
    char data[5];
    if (!error) ut::expect(two.read(data, 5, error) == 5, "what was written arrives");
  };
  EXPECT_FALSE(find_failure({.schedules = 300, .network = {.latency = 1ms}}, body).failure);
  const auto found = find_failure({.schedules = 300, .network = {.latency = 1ms, .resets = 20}}, body);
  ASSERT_TRUE(found.failure);
  EXPECT_LE(found.failure->switches, 2u);
}

TEST(Network, ASocketThatStaysOpenIsALeak) {
  const auto body = [] {
    static net::tcp_listener forgotten;
    forgotten = net::tcp_listener(server_at);
  };
  const auto found = find_failure({.schedules = 1, .shorten = false}, body);
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->reason, "leak: the function has returned, and sockets are open: 1");
}

TEST(Network, UnixSocketsAndFreePortsWork) {
  explore({.schedules = 20, .slowness = 0ns}, [] {
    for (const net::endpoint& at : {net::endpoint::local("/nowhere/at/all"), net::endpoint::ip("127.0.0.1", 0),
                                    net::endpoint::ip("0.0.0.0", 80), net::endpoint::ip("::1", 0)}) {
      net::tcp_listener listener(at);
      const auto bound = listener.local_endpoint();
      const auto to = bound.str() == "0.0.0.0:80" ? net::endpoint::ip("192.0.2.7", 80) : bound;
      task_group all;
      all.spawn([&] { accept_and_echo(listener); });
      {
        auto stream = net::tcp_stream::connect(to);
        EXPECT_EQ(exchange(stream, "x"), "x");
      }
      all.wait();
    }
  });
}

TEST(Network, TheSystemResolvesNames) {
  explore({.schedules = 2, .slowness = 0ns}, [] {
    EXPECT_FALSE(net::resolve("localhost", "80").empty());
    std::error_code error;
    static_cast<void>(net::tcp_stream::connect(net::address("localhost", 80), {}, error));
    EXPECT_EQ(error, std::errc::connection_refused);
  });
}

TEST(Network, TheSameSeedGivesTheSameNetwork) {
  const auto body = [] {
    auto [one, two] = ut::stream_pair();
    task_group all;
    all.spawn([&, &to = one] { to.write("0123456789", 10); });
    char data[10];
    two.read(data, 10);
    all.wait();
  };
  const ut::explore_options options{.schedules = 100, .network = {.jitter = 5ms, .short_reads = true}};
  EXPECT_EQ(explore(options, body).digest, explore(options, body).digest);
}

TEST(Network, OneOfOneResetsEach) {
  explore({.schedules = 20, .slowness = 0ns, .network = {.resets = 1}}, [] {
    auto [one, two] = ut::stream_pair();
    std::error_code error;
    one.write("x", error);
    ut::expect(error == std::errc::connection_reset || error == std::errc::broken_pipe, error.message().c_str());
  });
}

TEST(Network, TheLargestLatencyIsForEver) {
  explore({.schedules = 20, .slowness = 0ns, .network = {.latency = std::chrono::nanoseconds::max(), .jitter = 1h}},
          [] {
            auto [one, two] = ut::stream_pair();
            one.write("x", 1);
            two.expires_after(24h);
            char data;
            std::error_code error;
            static_cast<void>(two.read_some(&data, 1, error));
            ut::expect(error == std::errc::timed_out, error.message().c_str());
          });
}

}  // namespace
