// tcp_listener::serve with coroutines as handlers.

#include "net/serve_fixture.hpp"
#include "ways.hpp"

#include <atomic>
#include <exception>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoServe : public ServeTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(CoServe);

task<> echoes(net::tcp_stream& stream) {
  char part[100];
  for (;;) {
    co_await co_readable(stream);
    const std::size_t got = stream.read_some(part, sizeof part);
    if (got == 0) co_return;
    co_await co_write(stream, part, got);
  }
}

TEST_P(CoServe, EchoesToManyClientsAndLeavesNothingBehind) {
  in_runtime([] {
    server echoing;
    gauge handlers;
    echoing.start([&](net::tcp_stream& stream) -> task<> {
      const gauge::one here(handlers);
      co_await echoes(stream);
    });
    auto clients = echoing.clients(30);
    for (int round = 0; round < times(20); ++round)
      for (auto& each : clients) expect_echo(each);
    EXPECT_EQ(handlers.alive, 30);
    clients.clear();
    wait_until([&] { return handlers.alive == 0; });
    echoing.close_and_join();
    EXPECT_EQ(handlers.begun, 30);
  });
}

// Connections that wait have no stack.
TEST_P(CoServe, IdleConnectionsHaveNoStack) {
  in_runtime([] {
    server echoing;
    echoing.start(echoes);
    auto clients = echoing.clients(50);
    for (auto& each : clients) expect_echo(each);
    const auto stackless = [] {
      const stopped_world now(current_runtime());
      int found = 0;
      for_each_fiber(current_runtime(),
                     [&](const fiber_view& each) { found += each.state == fiber_view::status::waiting && !each.low; });
      return found;
    };
    wait_until([&] { return stackless() == 50; });
    echoing.close_and_join();
  });
}

TEST_P(CoServe, TheCloseEndsReadsBehindWhatHasArrived) {
  in_runtime([] {
    server draining;
    event go;
    draining.start([&](net::tcp_stream& stream) -> task<> {
      co_await co_wait(go);
      std::string all(5, 0);
      EXPECT_EQ(co_await co_read(stream, all.data(), all.size()), 5u);
      char more = 0;
      EXPECT_EQ(co_await co_read(stream, &more, 1), 0u);
      co_await co_write(stream, all);
    });
    auto client = draining.client();
    client.write("hello");
    wait_until([&] { return draining.group.size() == 1; });
    draining.listener.close();
    go.set();
    expect_hello(client);
    draining.running->get();
  });
}

TEST_P(CoServe, AHandlerWithATokenIsTold) {
  in_runtime([] {
    server draining;
    draining.start([&](net::tcp_stream& stream, const std::stop_token& closing) -> task<> {
      co_await co_select(on_stop(closing));
      co_await co_write(stream, std::string_view("hello"));
    });
    auto client = draining.client();
    wait_until([&] { return draining.group.size() == 1; });
    draining.listener.close();
    expect_hello(client);
    draining.running->get();
  });
}

TEST_P(CoServe, ExceptionsReachOnErrorAndEndTheirConnectionOnly) {
  in_runtime([] {
    server failing;
    std::atomic<int> reported{0};
    failing.start(
        [](net::tcp_stream& stream) -> task<> {
          char first = 0;
          co_await co_read(stream, &first, 1);
          if (first == 'x') throw std::runtime_error("planted");
          co_await co_write(stream, std::string_view("hello"));
        },
        {.grace = {},
         .on_error =
             [&](const net::endpoint& peer, std::exception_ptr failure) {
               EXPECT_FALSE(peer.str().empty());
               EXPECT_THROW(std::rethrow_exception(failure), std::runtime_error);
               ++reported;
             },
         .name = "served"});
    auto good = failing.client(), bad = failing.client();
    bad.write("x");
    char end = 0;
    EXPECT_EQ(bad.read_some(&end, 1), 0u);
    good.write("y");
    expect_hello(good);
    failing.close_and_join();
    EXPECT_EQ(reported, 1);
  });
}

TEST_P(CoServe, TheGroupIsStoppedWhenTheDrainTimeIsOver) {
  in_runtime([] {
    server draining;
    std::atomic<int> stopped{0};
    draining.start(
        [&](net::tcp_stream&, std::stop_token) -> task<> {
          try {
            co_await co_sleep_for(1h);
          } catch (const operation_cancelled&) {
            ++stopped;
            throw;
          }
        },
        {.drain_time = 1ms, .grace = {}, .on_error = [](auto&&...) { ADD_FAILURE() << "a stop is no failure"; }});
    auto clients = draining.clients(5);
    wait_until([&] { return draining.group.size() == 5; });
    draining.close_and_join();
    EXPECT_EQ(stopped, 5);
  });
}

// Fibers that are closed while they are full take the rest of the backlog in turn.
TEST_P(CoServe, KeepsToItsBoundOfConnections) {
  in_runtime([] {
    server bounded;
    gauge handlers;
    bounded.start(
        [&](net::tcp_stream& stream) -> task<> {
          const gauge::one here(handlers);
          co_await echoes(stream);
        },
        {.max_connections = 3, .grace = {}});
    auto clients = bounded.clients(12);
    say_hello(clients);
    wait_until([&] { return handlers.alive == 3; });
    while (!clients.empty()) clients.erase(answered(clients));
    bounded.close_and_join();
    EXPECT_EQ(handlers.begun, 12);
    EXPECT_EQ(handlers.most, 3);
  });
}

}  // namespace
