// Answers of interop/http.hpp whose fields are text.

#include "interop/http_fixture.hpp"

#include <chrono>
#include <optional>
#include <stdexcept>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class HttpFields : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(HttpFields);

// /304 and /204 answer so, / has a Content-Length.
void answer_by_path(http::exchange& now) {
  std::string fields;
  http::append_field(fields, "X-Own", "one");
  const auto path = now.request().path();
  const auto code = path == "/304"   ? http::status::not_modified
                    : path == "/204" ? http::status::no_content
                                     : http::status::accepted;
  now.begin(code, fields, path == "/" ? std::optional<std::uint64_t>(4) : std::nullopt);
  now.write("four");
}

TEST_P(HttpFields, AreFramedAsThoseOfAResponse) {
  in_runtime([] {
    const http_home home(answer_by_path);
    const std::string got = ask_raw(home.at(),
                                    "GET / HTTP/1.1\r\nHost: x\r\n\r\nHEAD / HTTP/1.1\r\nHost: x\r\n\r\n"
                                    "GET /304 HTTP/1.1\r\nHost: x\r\n\r\nGET /204 HTTP/1.1\r\nHost: x\r\n\r\n"
                                    "GET /chunks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(occurrences(got, "HTTP/1.1 202 Accepted\r\nX-Own: one\r\n"), 3) << got;
    EXPECT_EQ(occurrences(got, "HTTP/1.1 304 Not Modified\r\nX-Own: one\r\nDate: "), 1) << got;
    EXPECT_EQ(occurrences(got, "HTTP/1.1 204 No Content\r\nX-Own: one\r\nDate: "), 1) << got;
    EXPECT_EQ(occurrences(got, "Content-Length: 4\r\nDate: "), 2) << got;
    EXPECT_EQ(occurrences(got, "\r\n\r\nfourHTTP/1.1 "), 1) << got;
    EXPECT_TRUE(got.ends_with("GMT\r\n\r\n4\r\nfour\r\n0\r\n\r\n")) << got;
  });
}

TEST_P(HttpFields, AreFramedForOldClients) {
  in_runtime([] {
    const http_home home(answer_by_path);
    const std::string sized =
        ask_raw(home.at(), "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n");
    EXPECT_EQ(occurrences(sized, "Content-Length: 4\r\n"), 2) << sized;
    EXPECT_EQ(occurrences(sized, "Connection: keep-alive\r\n"), 1) << sized;
    const std::string unsized = ask_raw(home.at(), "GET /end HTTP/1.0\r\n\r\n");
    EXPECT_EQ(occurrences(unsized, "Content-Length") + occurrences(unsized, "Transfer-Encoding"), 0) << unsized;
    EXPECT_TRUE(unsized.ends_with("\r\n\r\nfour")) << unsized;
  });
}

TEST_P(HttpFields, AreRefusedIfTheyWouldEndTheHeader) {
  in_runtime([] {
    const http_home home([](http::exchange& now) {
      std::string fields;
      const bool in_value = now.request().path() == "/value";
      try {
        if (in_value) http::append_field(fields, "X-Own", "one\r\nX-Other: two");
        now.begin(http::status::ok, "X-Own: one", 0);
      } catch (const std::invalid_argument& error) {
        now.send({400U, error.what()});
      }
    });
    EXPECT_TRUE(ask_raw(home.at(), "GET /value HTTP/1.0\r\n\r\n").ends_with("X-Own has a line's end in its value"));
    EXPECT_TRUE(ask_raw(home.at(), "GET /end HTTP/1.0\r\n\r\n").ends_with("the last field has no line's end"));
  });
}

TEST_P(HttpFields, AReasonIsRefusedIfItWouldEndTheLine) {
  in_runtime([] {
    const http_home home([](http::exchange& now) {
      http::response made(200U, "");
      made.reason("OK\r\nX-Other: two");
      try {
        now.send(made);
      } catch (const std::invalid_argument& error) {
        now.send({400U, error.what()});
      }
    });
    EXPECT_TRUE(ask_raw(home.at(), last).ends_with("the reason has a line's end in it"));
  });
}

TEST_P(HttpFields, ATargetOrMethodIsRefusedIfItWouldEndTheLine) {
  in_runtime([] {
    const http_home home([](const http::request& asked) { return http::response(200U, std::string(asked.path())); });
    http::client client;
    for (const char* const target : {"/one HTTP/1.1\r\nX-Own: 1", "/a b", "/\n", "/\x7f"}) {
      http::url at = http::url::parse(home.url());
      at.target = target;
      EXPECT_THROW(client.open(at, http::request(http::verb::get)), std::invalid_argument) << target;
    }
    http::request own(http::verb::get);
    own.method_string("GET /first HTTP/1.1\r\n\r\nGET");
    EXPECT_THROW(client.send(home.url(), own), std::invalid_argument);
    EXPECT_EQ(client.get(home.url("/whole")).body(), "/whole");
  });
}

// A server chooses it, so it is no error of the caller's.
TEST_P(HttpFields, ALocationThatLeadsNowhereIsNotFollowed) {
  in_runtime([] {
    const http_home home([](const http::request& asked) {
      http::response made(302U, std::string(asked.path()));
      made.set(http::field::location, asked.path() == "/tls" ? "https://example.org/" : "http://a b/");
      return made;
    });
    http::client client({.redirects = 3});
    for (const char* const path : {"/bad", "/tls"}) EXPECT_EQ(client.get(home.url(path)).body(), path);
  });
}

TEST(HttpDate, HasTheFormOfAFieldForEachTime) {
  using std::chrono::sys_seconds;
  EXPECT_EQ(http::date(sys_seconds(784'111'777s)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http::date(sys_seconds(951'782'400s)), "Tue, 29 Feb 2000 00:00:00 GMT");
  EXPECT_EQ(http::date(sys_seconds(-1s)), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(http::date(sys_seconds::max()), "Fri, 31 Dec 9999 23:59:59 GMT");
  EXPECT_EQ(http::date(sys_seconds::min()), "Sat, 01 Jan 0000 00:00:00 GMT");
}

}  // namespace
