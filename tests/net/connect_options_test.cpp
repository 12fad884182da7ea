#include "net_fixture.hpp"

#include <ulexite/net/address.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <filesystem>

namespace ulexite::test {
namespace {

class ConnectOptions : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(ConnectOptions);

TEST_P(ConnectOptions, ConnectToAnAddress) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    const std::uint16_t port = listener.local_endpoint().port();
    for (const net::address& to :
         {net::address("127.0.0.1", port), net::address("localhost", port), net::address(listener.local_endpoint())}) {
      auto stream = net::tcp_stream::connect(to, {.timeout = bound});
      EXPECT_EQ(stream.remote_endpoint(), listener.local_endpoint());
      EXPECT_EQ(listener.accept().remote_endpoint(), stream.local_endpoint());
    }
    const std::string path = scratch_path("connect_options");
    net::tcp_listener local(net::endpoint::local(path));
    EXPECT_TRUE(net::tcp_stream::connect(net::address::parse("unix:" + path)).is_open());
  });
}

TEST_P(ConnectOptions, ConnectFromALocalAddress) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    const auto from = net::endpoint::parse("127.0.0.7:0");
    auto stream = net::tcp_stream::connect(listener.local_endpoint(), {.timeout = bound, .local = from});
    EXPECT_EQ(listener.accept().remote_endpoint().str().substr(0, 10), "127.0.0.7:");
    std::uint16_t port;
    {
      const refusing_port free;
      port = free.at().port();
    }
    const auto exactly = net::endpoint::ip("127.0.0.8", port);
    auto named = net::tcp_stream::connect(net::address("localhost", listener.local_endpoint().port()),
                                          {.timeout = bound, .local = exactly});
    EXPECT_EQ(named.local_endpoint(), exactly);
    EXPECT_EQ(listener.accept().remote_endpoint(), exactly);
  });
}

TEST_P(ConnectOptions, SayWhatWasWrong) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    std::error_code error;
    auto none = net::tcp_stream::connect(listener.local_endpoint(), {.local = net::endpoint::parse("[::1]:0")}, error);
    EXPECT_EQ(error, std::errc::address_family_not_supported);
    EXPECT_FALSE(none.is_open());
    try {
      (void)net::tcp_stream::connect(listener.local_endpoint(), {.local = net::endpoint::parse("192.0.2.1:0")});
      FAIL();
    } catch (const std::system_error& failure) {
      EXPECT_EQ(failure.code(), std::errc::address_not_available);
      EXPECT_NE(std::string(failure.what()).find("from 192.0.2.1:0"), std::string::npos) << failure.what();
    }
    const refusing_port refusing;
    none = net::tcp_stream::connect(refusing.at(), {.timeout = bound}, error);
    EXPECT_EQ(error, std::errc::connection_refused);
    none = net::tcp_stream::connect(net::address("a.name.invalid", 80), {.timeout = bound}, error);
    EXPECT_TRUE(error);
  });
}

TEST_P(ConnectOptions, TheTimeoutIsForAllOfIt) {
  in_runtime([] {
    net::tcp_listener full(loopback(), {.backlog = 1});
    std::vector<net::tcp_stream> waiting;
    std::error_code error;
    while (!error && waiting.size() < 20)
      waiting.push_back(net::tcp_stream::connect(full.local_endpoint(), {.timeout = 20ms}, error));
    EXPECT_EQ(error, std::errc::timed_out);
  });
}

TEST_P(ConnectOptions, TheCloseRemovesALocalPath) {
  in_runtime([] {
    const auto path = scratch_path("connect_from");
    const auto from = net::endpoint::local(path);
    const auto nobody = net::endpoint::local(path + ".none");
    std::error_code error;
    for (int i = 0; i < 2; ++i) {
      (void)net::tcp_stream::connect(nobody, {.local = from}, error);
      EXPECT_EQ(error, std::errc::no_such_file_or_directory);
      EXPECT_FALSE(std::filesystem::exists(path));
    }
    const net::tcp_listener listener(net::endpoint::local(path + ".server"));
    auto stream = net::tcp_stream::connect(listener.local_endpoint(), {.local = from});
    EXPECT_EQ(stream.local_endpoint(), from);
    EXPECT_TRUE(std::filesystem::exists(path));
    stream.close();
    EXPECT_FALSE(std::filesystem::exists(path));
  });
}

}  // namespace
}  // namespace ulexite::test
