// The inspector's answers and refusals. Its page is seen by tests/examples/inspector_browser.py.

#include "net_fixture.hpp"

#include <ulexite/interop/inspector.hpp>

#include <atomic>
#include <thread>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class Inspector : public testing::Test {
 protected:
  // The inspector's whole answer for that path, with its header.
  static std::string get(const inspector& from, const std::string& path, const std::string& host = "localhost") {
    return ask(from, "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }

  // All answers to these requests, of which the last ends the connection.
  static std::string ask(const inspector& from, const std::string& requests) {
    std::string answer;
    run([&] {
      auto stream = net::tcp_stream::connect(from.endpoint());
      stream.expires_after(bound);
      stream.write(requests);
      char part[4096];
      for (std::size_t got; (got = stream.read_some(part, sizeof part)) > 0;) answer.append(part, got);
    });
    return answer;
  }

  runtime watched_{{.threads = 1}};
};

TEST_F(Inspector, TellsThatItsPortIsTaken) {
  const inspector first(watched_, {.port = 0});
  const std::uint16_t taken = first.endpoint().port();
  try {
    const inspector second(watched_, {.port = taken});
    FAIL() << "no error";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::address_in_use);
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:" + std::to_string(taken)), std::string::npos) << error.what();
  }
  EXPECT_NE(get(first, "/dump.json").find("\"fibers_live\":0"), std::string::npos);
}

TEST_F(Inspector, RefusesOtherAddressesThanLoopback) {
  EXPECT_THROW(inspector(watched_, {.address = "0.0.0.0", .port = 0}), std::invalid_argument);
}

// A page of another site reaches the port under a name of that site.
TEST_F(Inspector, RefusesTheNamesOfOtherHosts) {
  const inspector page(watched_, {.port = 0});
  for (const char* own : {"localhost", "LocalHost:7071", "127.0.0.1", "127.8.9.10:7071", "[::1]:7071"})
    EXPECT_TRUE(get(page, "/dump.json", own).starts_with("HTTP/1.1 200 ")) << own;
  for (const char* other :
       {"127.evil.example", "127.0.0.1.evil.example:7071", "127.", "evil.example", "localhost.evil.example"})
    EXPECT_TRUE(get(page, "/dump.json", other).starts_with("HTTP/1.1 403 ")) << other;
}

// A page of another site could start a trace, although it could not read it.
TEST_F(Inspector, RefusesWhatAnotherSiteAsksFor) {
  const inspector page(watched_, {.port = 0});
  const auto from = [&](const std::string& path, const std::string& site) {
    return get(page, path, "localhost\r\nSec-Fetch-Site: " + site);
  };
  for (const char* const site : {"cross-site", "same-site"}) {
    EXPECT_TRUE(from("/trace?ms=1", site).starts_with("HTTP/1.1 403 ")) << site;
    EXPECT_TRUE(from("/dump.json?stuck", site).starts_with("HTTP/1.1 403 ")) << site;
    EXPECT_TRUE(from("/", site).starts_with("HTTP/1.1 200 ")) << site << ": a link to the page";
  }
  for (const char* const site : {"same-origin", "none"})
    EXPECT_TRUE(from("/dump.json", site).starts_with("HTTP/1.1 200 ")) << site;
}

// A body would pass for the next answer on the connection.
TEST_F(Inspector, AnswersHeadWithoutABody) {
  const inspector page(watched_, {.port = 0});
  const std::string answers = ask(page,
                                  "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"
                                  "GET /dump.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answers.starts_with("HTTP/1.1 405 ")) << answers;
  EXPECT_NE(answers.find("\r\nAllow: GET\r\n"), std::string::npos) << answers;
  const std::string after_head = answers.substr(answers.find("\r\n\r\n") + 4);
  EXPECT_TRUE(after_head.starts_with("HTTP/1.1 200 ")) << answers;
}

TEST_F(Inspector, AnswersWhileAllWorkersAreStuck) {
  const inspector page(watched_, {.port = 0});
  std::atomic<bool> stuck{false}, enough{false};
  auto hog = watched_.spawn([&] {
    stuck = true;
    while (!enough) {
    }
  });
  while (!stuck) std::this_thread::yield();
  EXPECT_NE(get(page, "/metrics").find("\nulexite_fibers_live 1\n"), std::string::npos);
  EXPECT_NE(get(page, "/dump.json").find("\"fibers_live\":1"), std::string::npos);
  EXPECT_FALSE(hog.done());
  enough = true;
  hog.join();
}

TEST_F(Inspector, CountsLongWaitsIfItIsAsked) {
  const inspector page(watched_, {.port = 0});
  EXPECT_EQ(get(page, "/metrics").find("ulexite_fibers_waiting_long"), std::string::npos);
  EXPECT_NE(get(page, "/metrics?long_wait_ms=60000").find("# TYPE ulexite_fibers_waiting_long gauge"),
            std::string::npos);
}

}  // namespace
