// The server of interop/http.hpp: connections between two requests.

#include "interop/http_fixture.hpp"

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class HttpIdle : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(HttpIdle);

std::string asked(raw_client& by, const std::string& path) {
  by.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  return by.up_to("GET " + path + " ");
}

TEST_P(HttpIdle, KeepsNoStack) {
  in_runtime([] {
    http_home home(hello);
    std::vector<std::unique_ptr<raw_client>> crowd;
    for (int i = 0; i < 30; ++i) crowd.push_back(std::make_unique<raw_client>(home.at()));
    for (const char* path : {"/first", "/second"}) {
      wait_until_stacks_are_given_up();
      EXPECT_LE(fibers_with_a_stack(), 2U);
      for (const auto& each : crowd) EXPECT_TRUE(asked(*each, path).starts_with("HTTP/1.1 200 "));
    }
    wait_until_stacks_are_given_up();
    EXPECT_LE(fibers_with_a_stack(), 2U);
    home.close();
    for (const auto& each : crowd) EXPECT_EQ(each->rest(), "");
    home.stop();
  });
}

// A request, of which the first bytes are empty lines and come one by one.
TEST_P(HttpIdle, HearsARequestInPieces) {
  in_runtime([] {
    http_home home(hello, {.limits = {.idle_time = bound, .header_time = bound}});
    raw_client client(home.at());
    for (const char piece : std::string("\r\n\r\nG")) {
      wait_until_stacks_are_given_up();
      client.send({&piece, 1});
    }
    client.send("ET /slowly HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(client.up_to("GET /slowly ").starts_with("HTTP/1.1 200 "));
    EXPECT_TRUE(asked(client, "/quickly").starts_with("HTTP/1.1 200 "));
  });
}

TEST_P(HttpIdle, EndsWhenTheServerIsAskedToStop) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    auto serving = spawn([&] { http::serve(listener, hello, {.limits = {.idle_time = bound}}); });
    raw_client fresh(listener.local_endpoint()), idle(listener.local_endpoint());
    asked(idle, "/");
    wait_until_stacks_are_given_up();
    serving.request_stop();
    EXPECT_THROW(serving.get(), operation_cancelled);
    EXPECT_EQ(idle.rest(), "");
    EXPECT_EQ(fresh.rest(), "");
  });
}

TEST_P(HttpIdle, KeepsNoStackInALoopOfOnesOwn) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    auto serving = spawn([&] {
      task_group connections;
      listener.serve(connections, [](net::tcp_stream& tcp, const std::stop_token& closing) {
        return http::co_serve_connection(tcp, closing, hello,
                                         {.limits = {.idle_time = std::chrono::nanoseconds::max()}});
      });
    });
    raw_client client(listener.local_endpoint());
    for (const char* path : {"/first", "/second"}) {
      EXPECT_TRUE(asked(client, path).starts_with("HTTP/1.1 200 "));
      wait_until_stacks_are_given_up();
      EXPECT_LE(fibers_with_a_stack(), 2U);
    }
    listener.close();
    EXPECT_EQ(client.rest(), "");
    serving.get();
  });
}

// As in a fiber with an accept loop of its own, which keeps its stack.
TEST_P(HttpIdle, BlocksTheCallerOfServeConnection) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    auto serving = spawn([&] {
      task_group connections;
      listener.serve(connections, [](net::tcp_stream& tcp, const std::stop_token& closing) {
        http::serve_connection(tcp, closing, hello, {.limits = {.idle_time = bound}});
      });
    });
    raw_client client(listener.local_endpoint());
    for (const char* path : {"/first", "/second"}) {
      EXPECT_TRUE(asked(client, path).starts_with("HTTP/1.1 200 "));
      wait_until_others_wait();
    }
    listener.close();
    EXPECT_EQ(client.rest(), "");
    serving.get();
  });
}

}  // namespace
