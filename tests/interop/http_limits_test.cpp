// The server of interop/http.hpp: limits of size and time. Raw clients.

#include "interop/http_fixture.hpp"

#include "support/watchdog.hpp"

#include <ulexite/sync/event.hpp>

#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class HttpLimits : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(HttpLimits);

TEST_P(HttpLimits, RefusesWhatIsTooLarge) {
  in_runtime([] {
    http_home home(hello, {.limits = {.header_size = 1000, .body_size = 100}});
    const std::string long_field = "X: " + std::string(2000, 'x') + "\r\n";
    std::string got = ask_raw(home.at(), "HEAD / HTTP/1.1\r\nHost: x\r\n" + long_field + "\r\n");
    EXPECT_TRUE(got.starts_with("HTTP/1.1 431 ") && got.ends_with("\r\n\r\n")) << got;
    got = ask_raw(home.at(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n");
    EXPECT_TRUE(got.starts_with("HTTP/1.1 413 ") && occurrences(got, "larger than 100 bytes") == 1) << got;
    const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    got = ask_raw(home.at(), chunked + "65\r\n" + std::string(101, 'x') + "\r\n0\r\n\r\n");
    EXPECT_TRUE(got.starts_with("HTTP/1.1 413 ")) << got;
    got = ask_raw(home.at(), chunked + "64;a=" + std::string(200'000, 'x'));
    EXPECT_TRUE(got.starts_with("HTTP/1.1 431 ")) << got;
    got = ask_raw(home.at(), chunked + "0\r\nX: " + std::string(200'000, 'x'));
    EXPECT_TRUE(got.starts_with("HTTP/1.1 4")) << got;
  });
}

TEST_P(HttpLimits, RefusesWhoIsSlow) {
  in_runtime([] {
    http_home home(hello, {.limits = {.header_time = 50ms, .body_time = 50ms}});
    std::string got = ask_raw(home.at(), "GET / HTTP/1.1\r\nHo");
    EXPECT_TRUE(got.starts_with("HTTP/1.1 408 ") && occurrences(got, "the header took longer than 0.05 s") == 1) << got;
    got = ask_raw(home.at(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab");
    EXPECT_TRUE(got.starts_with("HTTP/1.1 408 ") && occurrences(got, "the body took longer") == 1) << got;
  });
}

TEST_P(HttpLimits, EndsIdleConnections) {
  in_runtime([] {
    http_home home(hello, {.limits = {.idle_time = 50ms}});
    EXPECT_EQ(ask_raw(home.at(), ""), "");
    for (bool answered = false; !answered;) {  // on a busy machine the first request comes too late
      raw_client kept(home.at());
      kept.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      answered = kept.up_to("GET / ").starts_with("HTTP/1.1 200 ");
      if (!answered) continue;
      EXPECT_EQ(kept.rest(), "");
    }
  });
}

// A client that takes nothing, or too little, does not hold its connection.
TEST_P(HttpLimits, DropsWhoDoesNotRead) {
  in_runtime([] {
    event done;
    const std::string much(8 << 20, 'x');
    http_home home([&](const http::request&) { return http::response(200U, much); },
                   {.limits = {.write_time = 50ms, .least_rate = 0}, .on_end = [&](const http::exchange& of) {
                      EXPECT_EQ(of.result_int(), 200U);
                      EXPECT_FALSE(of.ended() && of.bytes_sent() == much.size());
                      done.set();
                    }});
    raw_client lazy(home.at());
    lazy.tcp().set_receive_buffer(4096);
    lazy.send(last);
    done.wait();
  });
}

// The system is offered more of a file at once than a client must take in the time for a write.
TEST(HttpLimitsOfFiles, GoToASlowClientForLongerThanAWriteMayLast) {
  run_and_leave_nothing({.threads = 2}, [] {
    constexpr std::size_t size = 4 << 20;
    const int file = ::memfd_create("sent slowly", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file, size), 0);
    http_home home(
        [&](http::exchange& now) {
          now.tcp().set_send_buffer(64 * 1024);
          now.begin({}, size);
          now.send_file(file, 0, size);
        },
        {.limits = {.write_time = 1s, .least_rate = 0}});
    raw_client slow(home.at());
    slow.tcp().set_receive_buffer(64 * 1024);
    slow.send(last);
    std::string part(size / 16, ' ');
    std::size_t got = 0;
    for (int i = 0; i < 15; ++i) {
      this_fiber::sleep_for(75ms);
      std::error_code error;
      got += slow.tcp().read(part.data(), part.size(), error);
      ASSERT_FALSE(error) << error.message() << " after " << got << " bytes";
    }
    EXPECT_GT(got + slow.rest().size(), size);  // with the header
    home.stop();
    ::close(file);
  });
}

TEST_P(HttpLimits, EndsAConnectionAfterItsTime) {
  in_runtime([] {
    http_home home(hello, {.limits = {.connection_time = 5ms}});
    raw_client client(home.at());
    for (bool last_one = false; !last_one; this_fiber::sleep_for(1ms)) {
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      const std::string got = client.up_to("GET / ");
      EXPECT_TRUE(got.starts_with("HTTP/1.1 200 ")) << got;
      last_one = occurrences(got, "Connection: close\r\n") == 1;
    }
    EXPECT_EQ(client.rest(), "");
  });
}

TEST_P(HttpLimits, WaitsForEverWhereItMay) {
  in_runtime([] {
    constexpr auto never = std::chrono::nanoseconds::max();
    http_home home(hello,
                   {.limits = {.header_time = never, .body_time = never, .write_time = never, .linger_time = never}});
    raw_client slow(home.at());
    slow.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\n");
    wait_until_others_wait();
    slow.send("b");
    EXPECT_TRUE(slow.rest().ends_with("POST / b"));
    EXPECT_EQ(http::client({.connect_time = never}).get(home.url()).body(), "GET / ");
  });
}

}  // namespace
