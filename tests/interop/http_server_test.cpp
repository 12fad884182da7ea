// The server of interop/http.hpp: what it answers, and what it refuses. Raw clients.

#include "interop/http_fixture.hpp"

#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class HttpServer : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(HttpServer);

TEST_P(HttpServer, AnswersOneRequestAfterTheOther) {
  in_runtime([] {
    http_home home(hello);
    const std::string got = ask_raw(home.at(),
                                    "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
                                    "POST /b?q HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                                    "\r\nPUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "2;x=y\r\nde\r\n1\r\nf\r\n0\r\nX-Late: 1\r\n\r\n" +
                                        last);
    EXPECT_EQ(occurrences(got, "HTTP/1.1 200 OK\r\n"), 4) << got;
    for (const char* part : {"GET /a ", "POST /b abc", "PUT /c def", "GET /last "})
      EXPECT_EQ(occurrences(got, part), 1);
    EXPECT_EQ(occurrences(got, "Connection: close\r\n"), 1);
    EXPECT_EQ(occurrences(got, "Date: "), 4);
  });
}

TEST_P(HttpServer, SpeaksWithOldClients) {
  in_runtime([] {
    http_home home([](http::exchange& now) {
      now.begin({});
      now.write("one");
      now.write("two");
    });
    std::string got = ask_raw(home.at(), "GET / HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\nonetwo")) << got;
    got = ask_raw(home.at(), last);
    EXPECT_TRUE(got.ends_with("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")) << got;
    http_home kept(hello);
    got = ask_raw(kept.at(), "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.0\r\n\r\n");
    EXPECT_EQ(occurrences(got, "HTTP/1.1 200 OK"), 2) << got;
    EXPECT_EQ(occurrences(got, "Connection: keep-alive"), 1) << got;
  });
}

// As a gateway does that passes on what another server has answered.
TEST_P(HttpServer, FramesAnswersThatNameAnotherFraming) {
  in_runtime([] {
    http_home home([](http::exchange& now) {
      http::response made(200U, "whole");
      made.chunked(true);
      if (now.request().path() == "/whole") return now.send(made);
      made.set(http::field::content_length, "5");
      now.begin(made);
      now.write("parts");
    });
    const std::string got = ask_raw(home.at(),
                                    "GET /whole HTTP/1.1\r\nHost: x\r\n\r\nGET /parts HTTP/1.1\r\nHost: x\r\n"
                                    "Connection: close\r\n\r\n");
    EXPECT_EQ(occurrences(got, "Content-Length: 5\r\n"), 2) << got;
    EXPECT_EQ(occurrences(got, "Transfer-Encoding"), 0) << got;
    EXPECT_EQ(occurrences(got, "\r\n\r\nwhole"), 1) << got;
    EXPECT_TRUE(got.ends_with("\r\n\r\nparts")) << got;
    EXPECT_TRUE(ask_raw(home.at(), "GET /whole HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nwhole"));
  });
}

// HTTP/1.0 has no chunks, and the answer that says that it is the last must be.
TEST_P(HttpServer, PassesTheEndOfAConnectionOn) {
  in_runtime([] {
    http_home home([](http::exchange& now) {
      http::response made(200U, "last");
      if (now.request().path() == "/last") {
        made.keep_alive(false);
        return now.send(made);
      }
      made.version(10);
      now.begin(made);
      now.write("old");
    });
    const std::string behind = "GET /last HTTP/1.1\r\nHost: x\r\n\r\n";
    for (const char* path : {"/last", "/old"}) {
      const std::string got = ask_raw(home.at(), "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n" + behind);
      EXPECT_EQ(occurrences(got, "\r\nConnection: close\r\n"), 1) << got;
      EXPECT_EQ(occurrences(got, "HTTP/1."), 1) << got;
      EXPECT_TRUE(got.ends_with(std::string("\r\n\r\n") + (path + 1))) << got;
    }
  });
}

TEST_P(HttpServer, AnswersHeadWithoutABody) {
  in_runtime([] {
    http_home home([](http::exchange& now) {
      if (now.request().path() != "/parts") return now.send({200U, "four"});
      now.begin({});
      now.write("dropped");
    });
    const std::string got = ask_raw(home.at(),
                                    "HEAD / HTTP/1.1\r\nHost: x\r\n\r\nHEAD /parts HTTP/1.1\r\nHost: x\r\n"
                                    "Connection: close\r\n\r\n");
    EXPECT_EQ(occurrences(got, "Content-Length: 4\r\n"), 1) << got;
    EXPECT_EQ(occurrences(got, "HTTP/1.1 200 OK\r\n"), 2) << got;
    EXPECT_EQ(occurrences(got, "four") + occurrences(got, "dropped"), 0) << got;
    EXPECT_TRUE(got.ends_with("\r\n\r\n")) << got;
  });
}

// What a proxy before this server could see otherwise must not be taken for a request, and ends the connection.
TEST_P(HttpServer, RefusesSmuggledRequests) {
  in_runtime([] {
    http_home home(hello);
    const std::string next = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    const auto post = [](const std::string& fields) { return "POST / HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n"; };
    const auto chunks = [&](const std::string& text) { return post("Transfer-Encoding: chunked\r\n") + text; };
    for (const auto& [text, code] : std::vector<std::pair<std::string, const char*>>{
             {post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", "400"},
             {post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n", "400"},
             {post("Content-Length: 5\r\nContent-Length: 6\r\n") + "abcde", "400"},
             {post("Content-Length: 5, 6\r\n") + "abcde", "400"},
             {post("Content-Length: +5\r\n") + "abcde", "400"},
             {post("Content-Length: -1\r\n"), "400"},
             {post("Content-Length: 0x5\r\n") + "abcde", "400"},
             {post("Content-Length : 5\r\n") + "abcde", "400"},
             {post("Content-Length: 99999999999999999999\r\n"), "400"},
             {post("Transfer-Encoding: gzip\r\n"), "501"},
             {post("Transfer-Encoding: chunked, gzip\r\n"), "501"},
             {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"), "400"},
             {post("Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n"), "501"},
             {post("Transfer-Encoding: \r\n"), "501"},
             {"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
             {chunks("xyz\r\n"), "400"},
             {chunks("0x5\r\nhello\r\n0\r\n\r\n"), "400"},
             {chunks("-1\r\n"), "400"},
             {chunks("5\nhello\r\n0\r\n\r\n"), "400"},
             {chunks("5\r\nhelloXX0\r\n\r\n"), "400"},
             {chunks("fffffffffffffffff\r\n"), "400"},
             {"GET / HTTP/1.1\nHost: x\n\n", "400"},
             {"GET / HTTP/1.1\r\n\r\n", "400"},
             {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400"},
             {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400"},
             {"GET / HTTP/2.5\r\nHost: x\r\n\r\n", "400"},
             {"nonsense\r\n\r\n", "400"}}) {
      const std::string got = ask_raw(home.at(), text + next);
      EXPECT_TRUE(got.starts_with(std::string("HTTP/1.1 ") + code)) << text << "\n--\n" << got;
      EXPECT_EQ(occurrences(got, "HTTP/1.1 "), 1) << text << "\n--\n" << got;
      EXPECT_EQ(occurrences(got, "Connection: close\r\n"), 1) << got;
    }
  });
}

// RFC 9112, 5.2: a folded line is refused, or becomes one line.
TEST_P(HttpServer, UnfoldsLines) {
  in_runtime([] {
    http_home home([](const http::request& asked) {
      return http::response(200U, std::string(http::view(asked["X-Folded"])) + '|' + value(asked, http::field::accept));
    });
    const std::string got = ask_raw(home.at(),
                                    "GET / HTTP/1.1\r\nHost: x\r\nX-Folded: a\r\n b\r\nAccept: c\r\n"
                                    "Connection: y\r\nConnection: close\r\nAccept: d\r\n\r\n");
    EXPECT_TRUE(got.ends_with("\r\n\r\na b|c, d")) << got;
  });
}

TEST_P(HttpServer, AsksForABodyThatIsHeldBack) {
  in_runtime([] {
    http_home home(hello);
    raw_client client(home.at());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    EXPECT_EQ(client.up_to("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc" + last);
    const std::string got = client.rest();
    EXPECT_EQ(occurrences(got, "POST / abc"), 1) << got;
    EXPECT_EQ(occurrences(got, "/last"), 1) << got;
    EXPECT_TRUE(
        ask_raw(home.at(), "GET / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n").starts_with("HTTP/1.1 417 "));
    // An answer without it ends the connection, because nobody knows whether the body will come.
    http_home hasty([](http::exchange& now) { now.send({403U, "no"}); });
    const std::string refused =
        ask_raw(hasty.at(), "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    EXPECT_TRUE(refused.starts_with("HTTP/1.1 403 ") && occurrences(refused, "Connection: close") == 1) << refused;
    // A body that comes anyway is dropped.
    const std::string two = ask_raw(hasty.at(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + last);
    EXPECT_EQ(occurrences(two, "HTTP/1.1 403 "), 2) << two;
  });
}

// An answer may begin before the end of its request, and neither is held in memory.
TEST_P(HttpServer, PassesBodiesInParts) {
  in_runtime([] {
    http_home home([](http::exchange& now) {
      std::string_view part = now.read_some();
      now.begin({});
      for (; !part.empty(); part = now.read_some()) now.write(part);
    });
    raw_client client(home.at());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    for (const std::string word : {"hello", "world"}) {
      client.send("5\r\n" + word + "\r\n");
      EXPECT_TRUE(client.up_to("5\r\n" + word + "\r\n").ends_with(word + "\r\n"));
    }
    client.send("0\r\n\r\n");
    EXPECT_EQ(client.rest(), "0\r\n\r\n");
  });
}

TEST_P(HttpServer, SendsASizeThatIsKnown) {
  in_runtime([] {
    std::atomic<int> failures{0};
    http_home home(
        [](http::exchange& now) {
          http::response header;
          header.content_length(6);
          now.begin(std::move(header.base()));
          now.flush();
          now.write("abc");
          if (now.request().path() == "/short") return;
          now.write(now.request().path() == "/long" ? "defg" : "def");
        },
        {.on_error = [&](const http::exchange&, const std::exception_ptr&) { ++failures; }});
    EXPECT_TRUE(ask_raw(home.at(), last).ends_with("\r\n\r\nabcdef"));
    for (const char* path : {"/short", "/long"}) {
      raw_client client(home.at());
      client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n");
      EXPECT_LT(client.rest().size(), 200U);
    }
    home.stop();
    EXPECT_EQ(failures, 2);
  });
}

// The answer is cut, as that of a client that left, but the server is to blame.
TEST_P(HttpServer, ReportsAFileThatCannotBeSent) {
  in_runtime([] {
    const os::directory no_file("/");
    std::vector<std::string> said;
    mutex guard;
    http_home home(
        [&](http::exchange& now) {
          const bool chunked = now.request().path() == "/chunked";
          now.begin(http::status::ok, "", chunked ? std::nullopt : std::optional<std::uint64_t>(10));
          now.send_file(no_file.native_handle(), 0, 10);
        },
        {.on_error = [&](const http::exchange&, const std::exception_ptr& failure) {
          const std::lock_guard lock(guard);
          try {
            std::rethrow_exception(failure);
          } catch (const std::exception& error) {
            said.emplace_back(error.what());
          }
        }});
    for (const char* const path : {"/chunked", "/file"})
      ask_raw(home.at(), "GET " + std::string(path) + last.substr(9));
    home.stop();
    ASSERT_EQ(said.size(), 2U);
    EXPECT_NE(said[0].find("without a Content-Length"), std::string::npos) << said[0];
    EXPECT_NE(said[1].find("sending a file"), std::string::npos) << said[1];
  });
}

TEST_P(HttpServer, ReportsWhatAHandlerThrows) {
  in_runtime([] {
    std::vector<std::string> said;
    mutex guard;
    http_home home(
        [](http::exchange& now) {
          const std::string_view path = now.request().path();
          if (path == "/refused") throw http::refusal(http::status::not_found, "there is no counter");
          if (path == "/teapot") throw http::refusal(418, "a number that Beast does not know");
          if (path == "/late") return timeout(1ms, [] { this_fiber::sleep_for(bound); });
          if (path == "/split") {
            http::response made(302U, "");
            made.set(http::field::location, "/x\r\nSet-Cookie: a=b");
            return now.begin(std::move(made.base()));
          }
          if (path == "/silent") return;
          if (path == "/begun") {
            now.begin({});
            now.write("begun");
          }
          // As the failure of a connection of the handler's own.
          if (path == "/backend") throw std::system_error(std::make_error_code(std::errc::connection_aborted));
          throw std::runtime_error("out of luck");
        },
        {.refuse = [](const http::exchange&, http::status code,
                      const std::string& why) { return http::response(code, "{" + why + "}"); },
         .on_error =
             [&](const http::exchange& of, const std::exception_ptr& failure) {
               const std::lock_guard lock(guard);
               try {
                 std::rethrow_exception(failure);
               } catch (const std::exception& error) {
                 said.push_back(std::string(of.request().path()) + ": " + error.what());
               }
             }});
    const auto get = [](std::string_view path) { return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n"; };
    const std::string got = ask_raw(home.at(), get("/thrown") + get("/backend") + get("/refused") + get("/teapot") +
                                                   get("/late") + get("/split") + get("/silent") + get("/begun"));
    EXPECT_EQ(occurrences(got, "HTTP/1.1 500 "), 5) << got;
    EXPECT_EQ(occurrences(got, "{a number that Beast does not know}"), 1) << got;
    EXPECT_EQ(occurrences(got, "{the server has failed}"), 4) << got;
    EXPECT_EQ(occurrences(got, "HTTP/1.1 404 "), 1) << got;
    EXPECT_EQ(occurrences(got, "{there is no counter}"), 1) << got;
    EXPECT_EQ(occurrences(got, "HTTP/1.1 503 "), 1) << got;
    EXPECT_EQ(occurrences(got, "Set-Cookie") + occurrences(got, "out of luck") + occurrences(got, "\r\n0\r\n"), 0)
        << got;
    home.stop();
    ASSERT_EQ(said.size(), 6U);
    EXPECT_EQ(said[0], "/thrown: out of luck");
    EXPECT_EQ(said[5], "/begun: out of luck");
  });
}

}  // namespace
