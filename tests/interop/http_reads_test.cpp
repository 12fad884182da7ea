// How many bytes the client of interop/http.hpp asks a connection for at a time. What Beast does by itself, 512 bytes
// behind a short header, made a proxy of large files twenty times slower.

#include "interop/http_fixture.hpp"

namespace {

using namespace ulexite;
using namespace ulexite::test;

class HttpReads : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(HttpReads);

// A connection that notes what is asked of it.
class noting_wire final : public http::wire {
 public:
  noting_wire(net::tcp_stream& tcp, std::vector<std::size_t>& asked) : wire(tcp), below_(tcp), asked_(asked) {}
  std::size_t read(void* into, std::size_t size, boost::system::error_code& error) override {
    asked_.push_back(size);
    return below_.read(into, size, error);
  }
  void write(std::string_view bytes, boost::system::error_code& error) override { below_.write(bytes, error); }

 private:
  detail::http::bare_wire below_;
  std::vector<std::size_t>& asked_;
};

TEST_P(HttpReads, ALargeBodyIsReadInLargePieces) {
  in_runtime([] {
    const std::string large(1 << 20, 'x');
    const http_home server([&](const http::request&) { return http::response(200U, large); });
    std::vector<std::size_t> asked;
    http::client client({.tls = [&](net::tcp_stream& tcp, const std::string&) -> std::unique_ptr<http::wire> {
      return std::make_unique<noting_wire>(tcp, asked);
    }});
    const std::string url = "https://" + server.at().str() + "/";
    for (int turn = 0; turn < 2; ++turn) {  // on a new connection, and on a kept one
      asked.clear();
      ASSERT_EQ(client.get(url).body(), large);
      ASSERT_GT(asked.size(), 1U);
      EXPECT_GE(asked[0], 2048U) << "for the header";
      for (std::size_t i = 1; i < asked.size(); ++i) EXPECT_GE(asked[i], 32U << 10) << i;
    }
    asked.clear();
    http::reply got = client.open(url, http::request(http::verb::get));
    std::size_t size = 0;
    for (std::string_view part = got.read_some(); !part.empty(); part = got.read_some()) size += part.size();
    EXPECT_EQ(size, large.size());
    for (std::size_t i = 1; i < asked.size(); ++i) EXPECT_GE(asked[i], 32U << 10) << i;
  });
}

}  // namespace
