// Connecting to the first of several endpoints.

#include "net_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>

namespace ulexite::test {
namespace {

class HappyEyeballs : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(HappyEyeballs);

// A listener with a full backlog: a connection is neither refused nor made.
class silent {
 public:
  silent() : listener_(loopback(), {.backlog = 0}) {
    do {
      filling_.push_back(net::tcp_stream::connect(listener_.local_endpoint(), {.timeout = bound}));
      while (backlog().tcpi_unacked < filling_.size()) this_fiber::yield();
    } while (backlog().tcpi_unacked <= backlog().tcpi_sacked);
  }
  [[nodiscard]] net::endpoint at() const { return listener_.local_endpoint(); }

 private:
  // For a listener, Linux reports the number of waiting connections (unacked), and the limit of this number (sacked).
  [[nodiscard]] tcp_info backlog() const {
    tcp_info told{};
    socklen_t size = sizeof told;
    EXPECT_EQ(::getsockopt(listener_.native_handle(), IPPROTO_TCP, TCP_INFO, &told, &size), 0);
    return told;
  }

  net::tcp_listener listener_;
  std::vector<net::tcp_stream> filling_;
};

net::endpoint connected_to(std::vector<net::endpoint> to) {
  std::error_code error;
  const auto made = net::tcp_stream::connect(to, {.timeout = bound}, error);
  EXPECT_FALSE(error) << error.message();
  return error ? net::endpoint() : made.remote_endpoint();
}

// On a delayed machine, an address that has not answered after a quarter of a second has lost its precedence.
void expect_preferred(const net::endpoint& preferred, std::vector<net::endpoint> among) {
  const auto begun = steady_clock::now();
  const net::endpoint winner = connected_to(std::move(among));
  if (steady_clock::now() - begun < 250ms) EXPECT_EQ(winner, preferred);
}

TEST_P(HappyEyeballs, NoneIsTriedAfterTheTimeLimit) {
  in_runtime([] {
    net::tcp_listener a(loopback()), b(loopback());
    const std::vector<net::endpoint> both{a.local_endpoint(), b.local_endpoint()};
    std::error_code error;
    EXPECT_FALSE(net::tcp_stream::connect(both, {.timeout = 0s}, error).is_open());
    EXPECT_EQ(error, std::errc::timed_out);
  });
}

TEST_P(HappyEyeballs, TheFirstIsPreferred) {
  in_runtime([] {
    net::tcp_listener a(loopback()), b(loopback());
    expect_preferred(a.local_endpoint(), {a.local_endpoint(), b.local_endpoint()});
  });
}

TEST_P(HappyEyeballs, RefusalsArePassedOver) {
  in_runtime([] {
    const refusing_port one, two;
    net::tcp_listener good(loopback());
    EXPECT_EQ(connected_to({one.at(), two.at(), good.local_endpoint()}), good.local_endpoint());
  });
}

TEST_P(HappyEyeballs, WhoDoesNotAnswerDoesNotHoldUpTheNext) {
  in_runtime([] {
    const silent dead;
    const refusing_port refusing;
    net::tcp_listener good(loopback());
    EXPECT_EQ(connected_to({dead.at(), refusing.at(), good.local_endpoint()}), good.local_endpoint());
  });
}

TEST_P(HappyEyeballs, TheFamiliesTakeTurns) {
  in_runtime([] {
    const refusing_port refusing;
    net::tcp_listener four(loopback()), six(net::endpoint::parse("[::1]:0"));
    // One address of the second family answers; it comes before the other addresses of the first.
    expect_preferred(six.local_endpoint(), {refusing.at(), four.local_endpoint(), six.local_endpoint()});
  });
}

TEST_P(HappyEyeballs, WhenNobodyAnswersTheErrorIsTold) {
  in_runtime([] {
    std::error_code error;
    const refusing_port one, two;
    std::vector<net::endpoint> nobody{one.at(), two.at()};
    EXPECT_FALSE(net::tcp_stream::connect(nobody, {.timeout = bound}, error).is_open());
    EXPECT_EQ(error, std::errc::connection_refused);
    EXPECT_FALSE(net::tcp_stream::connect(std::span<const net::endpoint>(), {.timeout = bound}, error).is_open());
    EXPECT_EQ(error, std::errc::address_not_available);
  });
}

TEST_P(HappyEyeballs, TheTimeOutIsForAll) {
  in_runtime([] {
    const silent a, b;
    std::error_code error;
    std::vector<net::endpoint> silence{a.at(), b.at()};
    EXPECT_FALSE(net::tcp_stream::connect(silence, {.timeout = 20ms}, error).is_open());
    EXPECT_EQ(error, std::make_error_code(std::errc::timed_out));
    EXPECT_FALSE(timeout(20ms, [&] { return net::tcp_stream::connect(silence, {}, error).is_open(); }));
    EXPECT_EQ(error, make_error_code(errc::deadline_exceeded));
  });
}

}  // namespace
}  // namespace ulexite::test
