// Connections from a local address to a name with several addresses.

#include "net_fixture.hpp"

#include <ulexite/net/address.hpp>

#include <dlfcn.h>
#include <netdb.h>

#include <optional>
#include <string_view>

// The name "two.example" has two addresses of this machine. Each other name has one of each family.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  static const auto original = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (const int failed = original("127.0.0.1", service, hints, found)) return failed;
  addrinfo* last = *found;
  while (last->ai_next) last = last->ai_next;
  return original(name == std::string_view("two.example") ? "127.0.0.2" : "::1", service, hints, &last->ai_next);
}

namespace ulexite::test {
namespace {

class ConnectLocal : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(ConnectLocal);

TEST_P(ConnectLocal, TheErrorIsThatOfTheOwnFamily) {
  in_runtime([] {
    std::error_code error;
    for (const char* local : {"127.0.0.1:0", "[::1]:0"}) {
      (void)net::tcp_stream::connect(net::address("both.example", 1), {.local = net::endpoint::parse(local)}, error);
      EXPECT_EQ(error, std::errc::connection_refused) << local;
    }
    const auto path = net::endpoint::local(scratch_path("connect_local"));
    (void)net::tcp_stream::connect(net::address("both.example", 1), {.local = path}, error);
    EXPECT_EQ(error, std::errc::address_family_not_supported);
  });
}

// An attempt that has failed must not keep the port.
TEST_P(ConnectLocal, ALocalPortReachesTheSecondEndpoint) {
  in_runtime([] {
    std::optional<net::tcp_listener> second;
    std::optional<refusing_port> first;
    std::uint16_t port = 0;
    while (!first) try {
        second.emplace(net::endpoint::parse("127.0.0.2:0"));
        port = second->local_endpoint().port();
        first.emplace(net::endpoint::ip("127.0.0.1", port));
      } catch (const std::system_error& error) {  // another test may use the port there
        ASSERT_EQ(error.code(), std::errc::address_in_use);
      }
    std::uint16_t free;
    {
      const refusing_port unused(net::endpoint::parse("127.0.0.3:0"));
      free = unused.at().port();
    }
    const auto from = net::endpoint::ip("127.0.0.3", free);
    std::error_code error;
    const auto made =
        net::tcp_stream::connect(net::address("two.example", port), {.timeout = bound, .local = from}, error);
    ASSERT_EQ(error, std::error_code()) << error.message();
    EXPECT_EQ(made.local_endpoint(), from);
    EXPECT_EQ(made.remote_endpoint(), second->local_endpoint());
  });
}

}  // namespace
}  // namespace ulexite::test
