// Connecting to the first of several endpoints.

#include "net_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>

namespace ulexite::test {
namespace {

class HappyEyeballs : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(HappyEyeballs);

// Where nobody listens, and a connection is refused at once.
net::endpoint refusing() { return net::tcp_listener(loopback()).local_endpoint(); }

// Where a connection is neither refused nor made: a listener whose backlog is full.
class silent {
 public:
  silent() : listener_(loopback(), {.backlog = 0}) {
    for (;;) {  // the system rounds a backlog up
      std::error_code error;
      auto made = net::tcp_stream::connect(listener_.local_endpoint(), 50ms, error);
      if (error) break;
      filling_.push_back(std::move(made));
    }
  }
  [[nodiscard]] net::endpoint at() const { return listener_.local_endpoint(); }

 private:
  net::tcp_listener listener_;
  std::vector<net::tcp_stream> filling_;
};

net::endpoint connected_to(std::vector<net::endpoint> to) {
  std::error_code error;
  const auto made = net::tcp_stream::connect(to, bound, error);
  EXPECT_FALSE(error) << error.message();
  return error ? net::endpoint() : made.remote_endpoint();
}

TEST_P(HappyEyeballs, TheFirstIsPreferred) {
  in_runtime([] {
    net::tcp_listener a(loopback()), b(loopback());
    EXPECT_EQ(connected_to({a.local_endpoint(), b.local_endpoint()}), a.local_endpoint());
  });
}

TEST_P(HappyEyeballs, RefusalsArePassedOver) {
  in_runtime([] {
    net::tcp_listener good(loopback());
    EXPECT_EQ(connected_to({refusing(), refusing(), good.local_endpoint()}), good.local_endpoint());
  });
}

TEST_P(HappyEyeballs, WhoDoesNotAnswerDoesNotHoldUpTheNext) {
  in_runtime([] {
    const silent dead;
    net::tcp_listener good(loopback());
    EXPECT_EQ(connected_to({dead.at(), refusing(), good.local_endpoint()}), good.local_endpoint());
  });
}

TEST_P(HappyEyeballs, TheFamiliesTakeTurns) {
  in_runtime([] {
    net::tcp_listener four(loopback()), six(net::endpoint::parse("[::1]:0"));
    // Of the second family there is one that answers; it comes before the others of the first.
    EXPECT_EQ(connected_to({refusing(), four.local_endpoint(), six.local_endpoint()}), six.local_endpoint());
  });
}

TEST_P(HappyEyeballs, WhenNobodyAnswersTheErrorIsTold) {
  in_runtime([] {
    std::error_code error;
    std::vector<net::endpoint> nobody{refusing(), refusing()};
    EXPECT_FALSE(net::tcp_stream::connect(nobody, bound, error).is_open());
    EXPECT_EQ(error, std::errc::connection_refused);
    EXPECT_FALSE(net::tcp_stream::connect(std::span<const net::endpoint>(), bound, error).is_open());
    EXPECT_EQ(error, std::errc::address_not_available);
  });
}

TEST_P(HappyEyeballs, TheTimeOutIsForAll) {
  in_runtime([] {
    const silent a, b;
    std::error_code error;
    std::vector<net::endpoint> silence{a.at(), b.at()};
    EXPECT_FALSE(net::tcp_stream::connect(silence, 20ms, error).is_open());
    EXPECT_EQ(error, std::make_error_code(std::errc::timed_out));
    EXPECT_FALSE(timeout(20ms, [&] { return net::tcp_stream::connect(silence, error).is_open(); }));
    EXPECT_EQ(error, make_error_code(errc::deadline_exceeded));
  });
}

}  // namespace
}  // namespace ulexite::test
