// Endpoints as texts and as values.

#include <ulexite/net/endpoint.hpp>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace ulexite::net {
namespace {

TEST(Endpoint, IsPrintedAsItIsParsed) {
  for (const std::string text :
       {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[::]:0", "[2001:db8::7]:443",
        "unix:/tmp/a socket", "unix:relative", "unix:@abstract", "[fe80::1%1]:9"})
    EXPECT_EQ(endpoint::parse(text).str(), text);
}

TEST(Endpoint, TellsFamilyPortAndPath) {
  EXPECT_EQ(endpoint::parse("127.0.0.1:80").family(), address_family::ipv4);
  EXPECT_EQ(endpoint::parse("127.0.0.1:80").port(), 80);
  EXPECT_EQ(endpoint::parse("[::1]:8080").family(), address_family::ipv6);
  EXPECT_EQ(endpoint::parse("[::1]:8080").port(), 8080);
  const auto local = endpoint::parse("unix:/tmp/x");
  EXPECT_EQ(local.family(), address_family::local);
  EXPECT_EQ(local.port(), 0);
  EXPECT_EQ(local.path(), "/tmp/x");
  EXPECT_EQ(endpoint::parse("unix:@x").path(), "") << "an abstract name is in no file system";
  EXPECT_EQ(endpoint().family(), address_family::none);
  EXPECT_EQ(endpoint().str(), "");
}

TEST(Endpoint, ComparesAddressPortAndPath) {
  EXPECT_EQ(endpoint::parse("127.0.0.1:80"), endpoint::ip("127.0.0.1", 80));
  EXPECT_EQ(endpoint::parse("[::1]:80"), endpoint::ip("::1", 80));
  EXPECT_EQ(endpoint::parse("unix:/a"), endpoint::local("/a"));
  EXPECT_EQ(endpoint(), endpoint());
  EXPECT_NE(endpoint::parse("127.0.0.1:80"), endpoint::parse("127.0.0.1:81"));
  EXPECT_NE(endpoint::parse("127.0.0.1:80"), endpoint::parse("127.0.0.2:80"));
  EXPECT_NE(endpoint::parse("[::1]:80"), endpoint::parse("[::2]:80"));
  EXPECT_NE(endpoint::parse("[fe80::1%1]:80"), endpoint::parse("[fe80::1]:80"));
  EXPECT_NE(endpoint::parse("unix:/a"), endpoint::parse("unix:@a"));
  EXPECT_NE(endpoint::parse("unix:/a"), endpoint());
}

TEST(Endpoint, IsASocketAddress) {
  const auto v4 = endpoint::parse("1.2.3.4:5");
  sockaddr_in raw{};
  ASSERT_EQ(v4.size(), sizeof raw);
  std::memcpy(&raw, v4.data(), sizeof raw);
  EXPECT_EQ(raw.sin_family, AF_INET);
  EXPECT_EQ(ntohl(raw.sin_addr.s_addr), 0x01020304u);
  EXPECT_EQ(ntohs(raw.sin_port), 5);
  EXPECT_EQ(endpoint::from(v4.data(), v4.size()), v4);
}

TEST(Endpoint, UnnamedUnixSocketHasNoPath) {
  sockaddr_un raw{};
  raw.sun_family = AF_UNIX;
  const auto unnamed = endpoint::from(reinterpret_cast<const sockaddr*>(&raw), sizeof raw.sun_family);
  EXPECT_EQ(unnamed.str(), "unix:");
  EXPECT_EQ(unnamed.path(), "");
}

TEST(Endpoint, ForeignSocketAddressIsRefused) {
  sockaddr_storage raw{};
  raw.ss_family = AF_APPLETALK;
  EXPECT_THROW((void)endpoint::from(reinterpret_cast<const sockaddr*>(&raw), sizeof raw), std::invalid_argument);
  raw.ss_family = AF_INET6;
  EXPECT_THROW((void)endpoint::from(reinterpret_cast<const sockaddr*>(&raw), sizeof(sockaddr_in)),
               std::invalid_argument);
  EXPECT_THROW((void)endpoint::from(nullptr, 0), std::invalid_argument);
}

std::string complaint(const std::string& text) {
  try {
    (void)endpoint::parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(Endpoint, ParseSaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "it is empty"},
      {"127.0.0.1", "the port is missing"},
      {"127.0.0.1:", "the port is missing"},
      {"127.0.0.1:65536", "no number from 0 to 65535"},
      {"127.0.0.1:-1", "no number from 0 to 65535"},
      {"127.0.0.1:8x", "no number from 0 to 65535"},
      {"127.0.0.1:99999999999999999999", "no number from 0 to 65535"},
      {"localhost:80", "no IPv4 address"},
      {"1.2.3:80", "no IPv4 address"},
      {"1.2.3.256:80", "no IPv4 address"},
      {":80", "no IPv4 address"},
      {"::1:80", "must stand in brackets"},
      {"[::1:80", "']' is missing"},
      {"[::1]", "must follow the ']'"},
      {"[::1]80", "must follow the ']'"},
      {"[::1]:", "the port is missing"},
      {"[::g]:80", "no IPv6 address"},
      {"[fe80::1%no-such-interface]:80", "no network interface \"no-such-interface\""},
      {"unix:", "the path is missing"},
      {"unix:@", "the path is missing"},
      {"unix:" + std::string(108, 'x'), "longer than 107 bytes"},
  };
  for (const auto& [text, why] : cases) {
    const std::string said = complaint(text);
    EXPECT_NE(said.find(why), said.npos) << text << ": " << said;
    EXPECT_EQ(said.find('"' + text + '"'), std::string::size_type{0}) << said;
  }
  EXPECT_EQ(complaint(std::string("unix:a\0b", 8)), "\"unix:a\\0b\" is no endpoint: it contains a NUL");
}

// inet_pton and if_nametoindex would stop at it, and take the text before it.
TEST(Endpoint, ANulIsRefusedAnywhere) {
  using namespace std::string_literals;
  for (const std::string& text :
       {"127.0.0.1\0.elsewhere:80"s, "[::1\0x]:80"s, "[fe80::1%lo\0x]:80"s, "127.0.0.1:80\0"s}) {
    const std::string said = complaint(text);
    EXPECT_NE(said.find("\\0"), said.npos) << said;
    EXPECT_NE(said.find("it contains a NUL"), said.npos) << said;
  }
  EXPECT_THROW((void)endpoint::ip("127.0.0.1\0x"s, 80), std::invalid_argument);
  EXPECT_THROW((void)endpoint::ip("::1\0x"s, 80), std::invalid_argument);
}

TEST(Endpoint, LongestPathFits) {
  const std::string text = "unix:" + std::string(107, 'x');
  EXPECT_EQ(endpoint::parse(text).str(), text);
}

TEST(Endpoint, CopyOutlivesItsOriginal) {
  for (const std::string& text : {std::string("unix:/a"), "unix:" + std::string(107, 'x'), std::string("[::1]:80")}) {
    auto original = std::make_unique<endpoint>(endpoint::parse(text));
    const endpoint copy = *original;
    endpoint taken = std::move(*original);
    EXPECT_EQ(original->str(), text);  // a move is a copy
    original.reset();
    EXPECT_EQ(copy.str(), text);
    EXPECT_EQ(copy, taken);
    taken = endpoint::parse("127.0.0.1:1");
    EXPECT_EQ(copy.str(), text);
    EXPECT_EQ(taken.port(), 1);
  }
}

TEST(Endpoint, LengthOfAnIpAddressIsThatOfItsFamily) {
  sockaddr_storage wide{};
  reinterpret_cast<sockaddr_in&>(wide).sin_port = htons(80);
  wide.ss_family = AF_INET;
  const endpoint made = endpoint::from(reinterpret_cast<const sockaddr*>(&wide), sizeof wide);
  EXPECT_EQ(made.size(), sizeof(sockaddr_in));
  EXPECT_EQ(made.str(), "0.0.0.0:80");
}

}  // namespace
}  // namespace ulexite::net
