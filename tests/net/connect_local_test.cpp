// Connections from a local address to a name with addresses of both families.

#include "net_fixture.hpp"

#include <ulexite/net/address.hpp>

#include <dlfcn.h>
#include <netdb.h>

// Each name has the two addresses of this machine.
extern "C" int getaddrinfo(const char*, const char* service, const addrinfo* hints, addrinfo** found) {
  static const auto original = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (const int failed = original("127.0.0.1", service, hints, found)) return failed;
  addrinfo* last = *found;
  while (last->ai_next) last = last->ai_next;
  return original("::1", service, hints, &last->ai_next);
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

}  // namespace
}  // namespace ulexite::test
