// The server of interop/http.hpp: how many connections it has, and how they end.

#include "interop/http_fixture.hpp"
#include "support/watchdog.hpp"

#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>

#include <boost/beast/websocket.hpp>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class HttpServerEnd : public NetTest {
 protected:
  // Beast's timers for websockets make an inert io_context once, whose descriptors stay open.
  void SetUp() override {
    net::tcp_stream none;
    detail::http::bare_wire first(none);
    const boost::beast::websocket::stream<http::wire&> socket{first};
  }
};
ULEXITE_ON_ALL_WORKER_COUNTS(HttpServerEnd);

TEST_P(HttpServerEnd, LimitsItsConnections) {
  in_runtime([] {
    http_home home(hello, {.max_connections = 1});
    raw_client first(home.at());
    first.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
    first.up_to("GET /1 ");
    raw_client second(home.at());
    second.send(last);
    second.tcp().expires_after(30ms);
    EXPECT_EQ(second.up_to("GET"), "cut: ");
    first.tcp().close();
    second.tcp().expires_after(bound);
    EXPECT_EQ(occurrences(second.rest(), "GET /last"), 1);
  });
}

// Idle connections end at once, a request under way is answered, and the last one says so.
TEST_P(HttpServerEnd, EndsInOrder) {
  in_runtime([] {
    event asked, may_answer;
    http_home home(
        [&](http::exchange& now) {
          if (now.request().path() == "/slow") {
            asked.set();
            may_answer.wait();
          }
          now.send(hello(now.request()));
        },
        {.limits = {.header_time = bound, .linger_time = 50ms}, .drain_time = bound});
    raw_client fresh(home.at()), idle(home.at()), slow(home.at()), half(home.at());
    idle.send("GET /i HTTP/1.1\r\nHost: x\r\n\r\n");
    idle.up_to("GET /i ");
    half.send("GET /i HTTP/1.1\r\nHost: x\r\n\r\nGET /half HTTP/1.1\r\nHo");
    half.up_to("GET /i ");
    slow.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /not-begun HTTP/1.1\r\nHost: x\r\n\r\n");
    asked.wait();
    home.close();
    EXPECT_EQ(idle.rest(), "");
    EXPECT_EQ(fresh.rest(), "");
    half.send("st: x\r\n\r\n");
    may_answer.set();
    const std::string got = slow.rest();
    EXPECT_EQ(occurrences(got, "HTTP/1.1 200 "), 1) << got;
    EXPECT_EQ(occurrences(got, "Connection: close\r\n"), 1) << got;
    home.stop();
  });
}

// After the drain time a handler is asked to stop.
TEST_P(HttpServerEnd, StopsHandlersAfterTheDrainTime) {
  in_runtime([] {
    event asked;
    std::atomic<bool> cancelled{false};
    http_home home(
        [&](const http::request&) -> http::response {
          asked.set();
          try {
            this_fiber::sleep_for(bound);
          } catch (const operation_cancelled&) {
            cancelled = true;
            throw;
          }
          return {};
        },
        {.drain_time = 20ms});
    raw_client client(home.at());
    client.send(last);
    asked.wait();
    home.stop();
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(client.rest(), "");
  });
}

TEST_P(HttpServerEnd, HandsAConnectionOver) {
  namespace websocket = boost::beast::websocket;
  in_runtime([] {
    http_home home([](http::exchange& now) {
      websocket::stream<http::wire&> socket(now.upgrade());
      boost::system::error_code error;
      socket.accept(now.request(), error);
      for (boost::beast::flat_buffer message; !error; message.clear()) {
        socket.read(message, error);
        if (!error) socket.write(message.data(), error);
      }
      EXPECT_EQ(error, websocket::error::closed);
    });
    net::tcp_stream tcp = net::tcp_stream::connect(home.at(), {.timeout = bound});
    tcp.expires_after(bound);
    websocket::stream<asio_stream> socket{asio_stream(tcp)};
    socket.handshake("localhost", "/");
    socket.write(boost::asio::buffer(std::string(100'000, 'x')));
    boost::beast::flat_buffer message;
    socket.read(message);
    EXPECT_EQ(message.size(), 100'000U);
    socket.close(websocket::close_code::normal);
    const std::string early = ask_raw(home.at(), "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\nbytes");
    EXPECT_TRUE(early.starts_with("HTTP/1.1 400 ")) << early;
  });
}

TEST_P(HttpServerEnd, SendsNoAnswerBehindAnUpgrade) {
  in_runtime([] {
    std::atomic<int> reported = 0;
    http_home home(
        [](http::exchange& now) {
          now.upgrade().write("of another protocol\n");
          if (now.request().path() == "/late") timeout(1ms, [] { this_fiber::sleep_for(bound); });
          throw std::runtime_error("out of luck");
        },
        {.on_error = [&](const http::exchange&, const std::exception_ptr&) { ++reported; }});
    for (const char* path : {"/thrown", "/late"}) {
      raw_client client(home.at());
      client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nUpgrade: other\r\n\r\n");
      EXPECT_EQ(client.up_to("\n"), "of another protocol\n");
      std::error_code error;
      char more;
      EXPECT_EQ(client.tcp().read_some(&more, 1, error), 0U) << more;
      EXPECT_EQ(error, std::errc::connection_reset);
    }
    home.stop();
    EXPECT_EQ(reported, 2);
  });
}

// The client's end is no failure of the handler that reads up to it, and what was sent arrives.
TEST_P(HttpServerEnd, EndsAnUpgradedConnectionInOrder) {
  in_runtime([] {
    std::atomic<int> reported = 0;
    http_home home(
        [](http::exchange& now) {
          http::wire& stream = now.upgrade();
          stream.write("of another protocol\n");
          for (char part[100];;) stream.write({part, stream.read_some(boost::asio::buffer(part))});
        },
        {.on_error = [&](const http::exchange&, const std::exception_ptr&) { ++reported; }});
    raw_client client(home.at());
    client.send("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: other\r\n\r\n");
    EXPECT_EQ(client.up_to("\n"), "of another protocol\n");
    client.send("heard\n");
    client.tcp().shutdown_write();
    EXPECT_EQ(client.up_to("\n"), "heard\n");
    std::error_code error;
    char more;
    EXPECT_EQ(client.tcp().read_some(&more, 1, error), 0U) << more;
    EXPECT_FALSE(error) << error.message();
    home.stop();
    EXPECT_EQ(reported, 0);
  });
}

TEST_P(HttpServerEnd, ServesManyAtATime) {
  in_runtime([] {
    http_home home(hello);
    task_group crowd;
    for (int i = 0; i < fibers(50); ++i)
      crowd.spawn([&, i] {
        raw_client client(home.at());
        for (int j = 0; j < 10; ++j) {
          const std::string path = "/" + std::to_string(i) + "/" + std::to_string(j);
          client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
          client.up_to("GET " + path + " ");
        }
      });
    crowd.wait();
  });
}

}  // namespace
