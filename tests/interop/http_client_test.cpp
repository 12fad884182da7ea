// The client of interop/http.hpp.

#include "interop/http_fixture.hpp"

#include <ulexite/interop/http.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/task_group.hpp>

namespace {

using namespace ulexite;
using namespace ulexite::test;
using http::verb;

class HttpClient : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(HttpClient);

// A server that reads the header of each request, and answers as it is told: answer(stream, number of the connection,
// number of the request on it). An empty text ends the connection.
class odd_server {
 public:
  using answer = std::function<std::string(net::tcp_stream&, int connection, int request)>;

  explicit odd_server(answer how)
      : serving_(spawn([this, how = std::move(how)] {
          task_group group;
          listener_.serve(group, [&](net::tcp_stream& tcp) { serve(tcp, ++connections, how); }, {.drain_time = 0ms});
        })) {}
  ~odd_server() {
    listener_.close();
    serving_.get();
  }
  [[nodiscard]] std::string url(std::string_view target = "/") const {
    return "http://" + listener_.local_endpoint().str() + std::string(target);
  }

  std::atomic<int> connections{0}, requests{0};

 private:
  void serve(net::tcp_stream& tcp, int number, const answer& how) {
    tcp.expires_after(bound);
    std::string read;
    for (int request = 1;; ++request) {
      std::size_t end;
      while ((end = read.find("\r\n\r\n")) == read.npos) {
        char part[4096];
        std::error_code error;
        const std::size_t got = tcp.read_some(part, sizeof part, error);
        if (got == 0) return;
        read.append(part, got);
      }
      read.erase(0, end + 4);
      ++requests;
      const std::string text = how(tcp, number, request);
      std::error_code error;
      tcp.write(text, error);
      if (error || text.empty()) return;
    }
  }

  net::tcp_listener listener_{loopback()};
  join_handle<> serving_;
};

const std::string two_bytes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

TEST_P(HttpClient, KeepsConnections) {
  in_runtime([] {
    std::atomic<int> requests{0};
    http_home home([&](const http::request& asked) { return ++requests, hello(asked); });
    http::client client;
    EXPECT_EQ(client.get(home.url("/a?b")).body(), "GET /a ");
    EXPECT_EQ(client.request(verb::post, home.url(), "text", "text/plain").body(), "POST / text");
    EXPECT_EQ(client.request(verb::head, home.url()).body(), "");
    EXPECT_EQ(client.idle_connections(), 1U);
    task_group crowd;
    for (int i = 0; i < 20; ++i)
      crowd.spawn([&] {
        for (int j = 0; j < 5; ++j) EXPECT_EQ(client.get(home.url("/many")).result_int(), 200U);
      });
    crowd.wait();
    EXPECT_LE(client.idle_connections(), 16U);
    client.close_idle();
    EXPECT_EQ(client.idle_connections(), 0U);
    EXPECT_EQ(requests, 103);
  });
}

TEST_P(HttpClient, DropsConnectionsThatIdledTooLong) {
  in_runtime([] {
    odd_server server([](auto&, int, int) { return two_bytes; });
    http::client brief({.idle_time = 1ms}), none({.idle_per_host = 0}), many({.idle_connections = 1});
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(brief.get(server.url()).body(), "hi");
      EXPECT_EQ(none.get(server.url()).body(), "hi");
      this_fiber::sleep_for(3ms);
    }
    EXPECT_EQ(server.connections, 4);
    EXPECT_EQ(none.idle_connections(), 0U);
    odd_server other([](auto&, int, int) { return two_bytes; });
    EXPECT_EQ(many.get(server.url()).body() + many.get(other.url()).body(), "hihi");
    EXPECT_EQ(many.idle_connections(), 1U);
  });
}

// The server closes a kept connection when the next request has come: only what may be executed twice is repeated.
TEST_P(HttpClient, RepeatsOnlyIdempotentRequests) {
  in_runtime([] {
    odd_server server([](auto&, int, int request) { return request == 1 ? two_bytes : ""; });
    http::client client;
    for (const verb method : {verb::get, verb::put, verb::delete_, verb::head, verb::options}) {
      client.close_idle();
      server.connections = server.requests = 0;
      EXPECT_EQ(client.get(server.url()).body(), "hi");
      EXPECT_EQ(client.request(method, server.url()).result_int(), 200U);
      EXPECT_EQ(server.connections, 2);
      EXPECT_EQ(server.requests, 3);
    }
    for (const verb method : {verb::post, verb::patch}) {
      client.close_idle();
      EXPECT_EQ(client.get(server.url()).body(), "hi");
      server.requests = 0;
      EXPECT_EQ(failure_of([&] { client.request(method, server.url(), "x"); }), "reading the answer: end of stream");
      EXPECT_EQ(server.requests, 1);
    }
    // Not on a new connection either, nor after a part of an answer.
    odd_server mute([](auto&, int, int) { return ""; });
    EXPECT_EQ(failure_of([&] { (void)client.get(mute.url()); }), "reading the answer: end of stream");
    EXPECT_EQ(mute.requests, 1);
    odd_server cuts([](auto& tcp, int, int request) {
      if (request == 1) return two_bytes;
      tcp.write("HTTP/1.1 2");
      return std::string();
    });
    EXPECT_EQ(client.get(cuts.url()).body(), "hi");
    EXPECT_EQ(failure_of([&] { (void)client.get(cuts.url()); }), "reading the answer: partial message");
    EXPECT_EQ(cuts.requests, 2);
  });
}

// One that was seen to be closed is not used: so a POST succeeds.
TEST_P(HttpClient, DoesNotUseAClosedConnection) {
  in_runtime([] {
    event closed;
    odd_server once([&](auto& tcp, int, int) {
      tcp.write(two_bytes);
      tcp.shutdown_write();
      closed.set();
      return std::string();
    });
    http::client client;
    EXPECT_EQ(client.get(once.url()).body(), "hi");
    closed.wait();
    EXPECT_EQ(client.request(verb::post, once.url(), "x").body(), "hi");
    EXPECT_EQ(once.connections, 2);
    // Bytes that nobody has asked for are no answer.
    odd_server chatty([](auto&, int, int) { return two_bytes + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"; });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get(chatty.url()).body(), "hi");
  });
}

// The answer may begin before the body has ended, and end before the client knows that the body has.
TEST_P(HttpClient, SendsBodiesInParts) {
  in_runtime([] {
    http_home home([](http::exchange& now) {
      now.begin({});
      for (auto part = now.read_some(); !part.empty(); part = now.read_some()) now.write(part);
    });
    const auto to = http::url::parse(home.url());
    http::client client;
    for (const auto size : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(6)}) {
      http::reply got = client.begin(to, http::request(verb::post), size);
      EXPECT_TRUE(got.write("abc"));
      got.read_header();
      EXPECT_EQ(got.read_some(), "abc");
      EXPECT_TRUE(got.write("def"));
      std::string rest = size ? got.read_all(10) : "";
      EXPECT_TRUE(got.end());
      rest += got.read_all(10);
      EXPECT_EQ(rest, "def");
      EXPECT_EQ(client.idle_connections(), 1U);
    }
    {
      http::reply left = client.begin(to, http::request(verb::post), 6);
      EXPECT_TRUE(left.write("abc"));
      EXPECT_FALSE(left.end());
      EXPECT_THROW(left.write("defg"), std::logic_error);
    }
    EXPECT_EQ(client.idle_connections(), 0U);
    EXPECT_THROW((void)client.begin("http://127.0.0.1:1", {}), http::not_connected);
  });
}

// A proxy reads a request in a fiber and answers in another.
TEST_P(HttpClient, AnExchangeIsReadAndAnsweredAtOnce) {
  in_runtime([] {
    http_home home([](http::exchange& now) {
      channel<std::string> parts;
      now.ask_for_body();
      scope([&](task_group& reading) {
        reading.spawn([&] {
          for (auto part = now.read_some(); !part.empty(); part = now.read_some()) parts.send(std::string(part));
          parts.close();
        });
        now.begin({});
        now.flush();
        for (const std::string& part : parts) now.write(part);
      });
    });
    http::client client;
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(client.request(verb::post, home.url(), "text").body(), "text");
      EXPECT_EQ(client.idle_connections(), 1U);
    }
  });
}

TEST_P(HttpClient, ReadsAllKindsOfAnswers) {
  in_runtime([] {
    const std::vector<std::pair<std::string, std::string>> answers = {
        {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + two_bytes, "hi"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0\r\nX: y\r\n\r\n", "hi"},
        {"HTTP/1.1 204 No Content\r\n\r\n", ""},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", ""}};
    for (const auto& [text, body] : answers) {
      odd_server server([&](auto&, int, int) { return text; });
      http::client client;
      EXPECT_EQ(client.get(server.url()).body(), body) << text;
      EXPECT_EQ(client.get(server.url()).body(), body) << text;
      EXPECT_EQ(server.connections, 1) << text;
    }
    const std::string long_text(300'000, 'x');
    odd_server to_end([&](auto& tcp, int, int) {
      tcp.write("HTTP/1.0 200 OK\r\n\r\n" + long_text);
      return std::string();
    });
    http::client client;
    EXPECT_EQ(client.get(to_end.url()).body(), long_text);
    EXPECT_EQ(client.idle_connections(), 0U);
    http_home home([&](const http::request&) { return http::response(200U, long_text); });
    http::reply got = client.open(home.url(), http::request());
    EXPECT_EQ(got.body_size(), long_text.size());
    std::string all;
    for (std::string_view part = got.read_some(); !part.empty(); part = got.read_some()) all += part;
    EXPECT_EQ(all, long_text);
    EXPECT_EQ(client.idle_connections(), 1U);
    {
      const http::reply unread = client.open(home.url(), http::request());
    }
    EXPECT_EQ(client.idle_connections(), 0U);
  });
}

TEST_P(HttpClient, RefusesBadAnswers) {
  in_runtime([] {
    const std::vector<std::pair<std::string, std::string>> answers = {
        {"nonsense\r\n\r\n", "reading the answer: bad version"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", "reading the answer: bad"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "reading the answer: bad Transfer-Encoding"},
        {"HTTP/1.1 200 OK\r\nX: " + std::string(3000, 'x') + "\r\n\r\n", "reading the answer: header limit exceeded"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", "reading the answer: body limit exceeded"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + std::string(101, 'x') + "\r\n0\r\n\r\n",
         "reading the answer: body limit exceeded"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=" + std::string(100'000, 'x'),
         "reading the answer: buffer overflow"}};
    http::client client({.header_size = 1000, .body_size = 100});
    for (const auto& [text, why] : answers) {
      odd_server server([&](auto&, int, int) { return text; });
      const std::string got = failure_of([&] { (void)client.get(server.url()); });
      client.close_idle();  // the one whose answer was only too large
      EXPECT_TRUE(got.starts_with(why)) << got << " for " << text.substr(0, 100);
    }
    EXPECT_EQ(failure_of([&] { (void)client.get("https://localhost/"); }),
              "\"https://localhost\": this client has no TLS, see client_options::tls");
    const refusing_port nobody;
    EXPECT_NE(failure_of([&] { (void)client.get("http://" + nobody.at().str()); }).find("Connection refused"),
              std::string::npos);
    http::request split(verb::get);
    split.set("X", "y\r\nX-Evil: z");
    EXPECT_EQ(failure_of([&] { client.send("http://localhost/", split); }),
              "the field X has a line's end in its value");
  });
}

TEST_P(HttpClient, HearsDeadlinesAndRequestsToStop) {
  in_runtime([] {
    event asked;
    http_home home(
        [&](const http::request& got) {
          if (got.path() == "/ok") return hello(got);
          asked.set();
          this_fiber::sleep_for(bound);
          return http::response();
        },
        {.drain_time = 0ms});
    http::client client;
    EXPECT_THROW((void)timeout(20ms, [&] { return client.get(home.url("/waits")); }), deadline_exceeded);
    EXPECT_EQ(client.idle_connections(), 0U);
    auto getting = spawn([&] { (void)client.get(home.url("/waits")); });
    asked.wait();
    getting.request_stop();
    EXPECT_THROW(getting.get(), operation_cancelled);
    EXPECT_EQ(client.idle_connections(), 0U);
    EXPECT_EQ(client.get(home.url("/ok")).result_int(), 200U);
    // In the middle of a body, too.
    odd_server stops([](auto& tcp, int, int) {
      tcp.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
      this_fiber::sleep_for(bound);
      return std::string();
    });
    EXPECT_THROW((void)timeout(20ms, [&] { return client.get(stops.url()); }), deadline_exceeded);
  });
}

// The end of what has come is not the end of the answer.
TEST_P(HttpClient, FailsAgainAfterAFailure) {
  in_runtime([] {
    odd_server stops([](auto& tcp, int number, int) {
      if (number == 1) tcp.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
      this_fiber::sleep_for(bound);
      return std::string();
    });
    http::client client;
    http::reply begun = client.open(stops.url(), http::request(verb::get));
    EXPECT_EQ(begun.read_some(), "half");
    EXPECT_FALSE(try_for(20ms, [&] { return begun.read_some(); }));
    for (int i = 0; i < 2; ++i) EXPECT_THROW((void)begun.read_some(), std::system_error);
    EXPECT_THROW((void)begun.read_all(100), std::system_error);
    http::reply silent = client.begin(stops.url(), http::request(verb::post), 0);
    EXPECT_TRUE(silent.end());
    EXPECT_FALSE(try_for(20ms, [&] { return silent.read_header(), true; }));
    EXPECT_THROW(silent.read_header(), std::system_error);
    EXPECT_THROW((void)silent.read_some(), std::system_error);
  });
}

// A gateway passes on what a client has asked, with the framing of a body that has been read, or that was dropped.
TEST_P(HttpClient, AnnouncesNoBodyWithoutOne) {
  in_runtime([] {
    http_home home([](const http::request& asked) {
      if (asked.path() == "/moved") {
        http::response made(302U, "");
        made.set(http::field::location, "/");
        return made;
      }
      return http::response(200U, std::to_string(asked.count(http::field::transfer_encoding)) + " " +
                                      std::to_string(asked.count(http::field::content_length)));
    });
    http::client client({.redirects = 1});
    http::request asked(verb::get);
    asked.chunked(true);
    EXPECT_EQ(client.send(home.url(), asked).body(), "0 0");
    asked.set(http::field::transfer_encoding, "gzip, chunked");
    EXPECT_EQ(client.send(home.url(), asked).body(), "0 0");
    asked.content_length(7);
    EXPECT_EQ(client.send(home.url(), asked).body(), "0 0");
    http::request moved(verb::post, "/", "body");
    moved.chunked(true);
    EXPECT_EQ(client.send(home.url("/moved"), moved).body(), "0 0");
  });
}

TEST_P(HttpClient, FollowsRedirectsIfItMay) {
  in_runtime([] {
    http_home other(hello);
    http_home home([&](const http::request& asked) {
      http::response made(static_cast<unsigned>(std::stoi(std::string(asked.path().substr(1, 3)))), "moved");
      if (asked.path().ends_with("/loop")) made.set(http::field::location, "/301/loop");
      if (asked.path().ends_with("/there")) made.set(http::field::location, other.url("/end"));
      if (asked.path() == "/200/secret") made.body() = std::string(http::view(asked[http::field::authorization]));
      if (asked.path().ends_with("/secret") && made.result_int() != 200U)
        made.set(http::field::location, "../200/secret");
      return made;
    });
    http::client strict, client({.redirects = 3});
    EXPECT_EQ(strict.get(home.url("/301/there")).result_int(), 301U);
    EXPECT_EQ(client.get(home.url("/301/there")).body(), "GET /end ");
    EXPECT_EQ(client.get(home.url("/301/loop")).result_int(), 301U);
    EXPECT_EQ(client.request(verb::post, home.url("/302/there"), "x").body(), "GET /end ");
    EXPECT_EQ(client.request(verb::post, home.url("/307/there"), "x").body(), "POST /end x");
    EXPECT_EQ(client.request(verb::put, home.url("/303/there"), "x").body(), "GET /end ");
    http::request secret(verb::get);
    secret.set(http::field::authorization, "key");
    EXPECT_EQ(client.send(home.url("/308/secret"), secret).body(), "key");
    http_home listens([](const http::request& asked) {
      return http::response(200U, asked.count(http::field::authorization) > 0 ? "told" : "not told");
    });
    http_home leads([&](const http::request&) {
      http::response made(302U, "");
      made.set(http::field::location, listens.url());
      return made;
    });
    EXPECT_EQ(client.send(leads.url(), secret).body(), "not told");
  });
}

}  // namespace
