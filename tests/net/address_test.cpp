// Addresses as users write them.

#include "net_fixture.hpp"

#include <ulexite/net/address.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <system_error>

namespace ulexite::test {
namespace {

using net::address;

std::string why_refused(const std::string& text) try {
  static_cast<void>(address::parse(text));
  return "";
} catch (const std::invalid_argument& refusal) {
  return refusal.what();
}

TEST(Address, IsPrintedAsItIsParsed) {
  for (const std::string text : {"example.org:80", "localhost:0", "a-b.c:65535", "127.0.0.1:80", "[::1]:80",
                                 "[fe80::1%1]:9", "unix:/tmp/a socket", "unix:@abstract"})
    EXPECT_EQ(address::parse(text).str(), text);
}

TEST(Address, TellsHostAndPort) {
  EXPECT_EQ(address::parse("example.org:80").host(), "example.org");
  EXPECT_EQ(address::parse("example.org:80").port(), 80);
  EXPECT_TRUE(address::parse("example.org:80").has_name());
  EXPECT_EQ(address::parse("[::1]:8080").host(), "::1");
  EXPECT_EQ(address::parse("[::1]:8080").port(), 8080);
  EXPECT_EQ(address::parse("[fe80::1%1]:9").host(), "fe80::1%1");
  EXPECT_EQ(address::parse("127.0.0.1:1").host(), "127.0.0.1");
  EXPECT_FALSE(address::parse("127.0.0.1:1").has_name());
  EXPECT_EQ(address::parse("unix:/tmp/x").host(), "");
  EXPECT_EQ(address::parse("unix:/tmp/x").port(), 0);
}

TEST(Address, TakesADefaultPort) {
  EXPECT_EQ(address::parse("example.org", 80).str(), "example.org:80");
  EXPECT_EQ(address::parse("example.org:81", 80).str(), "example.org:81");
  EXPECT_EQ(address::parse("127.0.0.1", 80).str(), "127.0.0.1:80");
  EXPECT_EQ(address::parse("[::1]", 80).str(), "[::1]:80");
  EXPECT_EQ(address::parse("unix:/x", 80).str(), "unix:/x");
}

TEST(Address, IsMadeOfHostAndPortOrOfAnEndpoint) {
  EXPECT_EQ(address("example.org", 80), address::parse("example.org:80"));
  EXPECT_EQ(address("::1", 80), address::parse("[::1]:80"));
  EXPECT_EQ(address("A::0", 80), address::parse("[A::0]:80"));
  EXPECT_EQ(address("127.0.0.1", 80), address::parse("127.0.0.1:80"));
  EXPECT_EQ(address(net::endpoint::parse("[::1]:80")), address::parse("[::1]:80"));
  EXPECT_EQ(address("m\xc3\xbcller.example", 80), address::parse("m\xc3\xbcller.example:80"));
  EXPECT_NE(address("example.org", 80), address("example.org", 81));
  EXPECT_NE(address("example.org", 80), address("example.com", 80));
  EXPECT_THROW(address{net::endpoint{}}, std::invalid_argument);
  EXPECT_THROW(address("", 80), std::invalid_argument);
  EXPECT_THROW(address("a b", 80), std::invalid_argument);
  EXPECT_THROW(address("unix", 80), std::invalid_argument);  // "unix:80" is a path
  EXPECT_THROW(static_cast<void>(address::parse("unix", 80)), std::invalid_argument);
}

TEST(Address, RefusesWithTheTextAndTheReason) {
  for (const auto& [text, reason] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", "it is empty"},
           {"example.org", "the port is missing"},
           {"example.org:", "the port is missing"},
           {":80", "the host is missing"},
           {"example.org:http", "no number from 0 to 65535"},
           {"example.org:65536", "no number from 0 to 65535"},
           {"example.org:-1", "no number from 0 to 65535"},
           {"http://example.org:80", "no scheme"},
           {"a/b:80", "no such characters"},
           {"a b:80", "no such characters"},
           {"*:80", "no such characters"},
           {"::1:80", "must be in brackets"},
           {"fe80::1:80", "must be in brackets"},
           {"[::1:80", "']' is missing"},
           {"[::1]80", "must follow the ']'"},
           {"1.2.3:80", "no IPv4 address"},
           {"unix:", "the path is missing"},
           {std::string("a\0b:80", 6), "no such characters"},
       }) {
    EXPECT_NE(why_refused(text).find(reason), std::string::npos) << text << ": " << why_refused(text);
  }
}

class AddressTest : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(AddressTest);

TEST_P(AddressTest, ResolvesNamesAndNumbers) {
  in_runtime([] {
    const auto found = address::parse("localhost:80").resolve();
    ASSERT_FALSE(found.empty());
    for (const auto& each : found) EXPECT_EQ(each.port(), 80);
    EXPECT_EQ(address::parse("[::1]:7").resolve(), std::vector{net::endpoint::parse("[::1]:7")});
    std::error_code error;
    EXPECT_EQ(address::parse("unix:/x").resolve(error), std::vector{net::endpoint::local("/x")});
    EXPECT_FALSE(error);
    static_cast<void>(address::parse("no-such-host.invalid:80").resolve(error));
    EXPECT_TRUE(error);
  });
}

TEST_P(AddressTest, IsWhereAListenerListens) {
  in_runtime([] {
    auto listener = net::tcp_listener::listen(address::parse("localhost:0"));
    auto client = net::tcp_stream::connect(listener.local_endpoint(), {.timeout = bound});
    EXPECT_TRUE(listener.accept().is_open());
    EXPECT_TRUE(net::tcp_listener::listen(address::parse("127.0.0.1:0")).is_open());
    try {
      static_cast<void>(net::tcp_listener::listen(address(listener.local_endpoint())));
      ADD_FAILURE() << "the port is in use";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::address_in_use);
      EXPECT_NE(std::string(error.what()).find(listener.local_endpoint().str()), std::string::npos) << error.what();
    }
    EXPECT_THROW(static_cast<void>(net::tcp_listener::listen(address::parse("no-such-host.invalid:80"))),
                 std::system_error);
    this_fiber::check();
  });
}

}  // namespace
}  // namespace ulexite::test
