// tcp_listener::serve: its connections, its bounds, and what it outlasts.

#include "descriptor_limit.hpp"
#include "serve_fixture.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

namespace ulexite::test {
namespace {

class Serve : public ServeTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(Serve);

TEST_P(Serve, EchoesToManyClientsAndLeavesNothingBehind) {
  in_runtime([] {
    server echoing;
    const std::size_t before = open_descriptors();
    echoing.start(echo);
    task_group clients;
    for (int i = 0; i < 100; ++i)
      clients.spawn([&] {
        auto client = echoing.client();
        for (int k = 0; k < 5; ++k) expect_echo(client);
      });
    clients.wait();
    echoing.close_and_join();
    EXPECT_EQ(open_descriptors(), before - 1) << "all but the listener's";
    EXPECT_EQ(echoing.group.failures(), 0u);
  });
}

// The connections of two listeners can be told apart in a report.
TEST_P(Serve, ReportsNameTheCallerOfServe) {
  in_runtime([] {
    server echoing;
    std::ostringstream out;
    const int line = __LINE__ + 2;
    auto serving = spawn([&] {
      echoing.listener.serve(echoing.group, [&](net::tcp_stream&) { current_runtime().dump(out); },
                             {.grace = {}, .name = "admin"});
    });
    auto client = echoing.client();
    char byte;
    EXPECT_EQ(client.read_some(&byte, 1), 0u);
    echoing.listener.close();
    serving.get();
    const std::string text = out.str();
    EXPECT_NE(text.find("serve_test.cpp:" + std::to_string(line)), std::string::npos) << text;
    EXPECT_NE(text.find("\"admin\""), std::string::npos) << text;
    EXPECT_EQ(text.find("net/serve.cpp:"), std::string::npos) << text;
  });
}

TEST_P(Serve, KeepsExactlyToItsBoundOfConnections) {
  in_runtime([] {
    server echoing;
    gauge handlers;
    echoing.start(counted_echo(handlers), {.max_connections = 3});
    auto clients = echoing.clients(9);
    say_hello(clients);
    for (int closed = 0; closed < 9; ++closed) {
      const int room = std::min(closed + 3, 9);
      wait_until([&] { return handlers.begun == room && handlers.alive == room - closed; });
      let_others_run();
      EXPECT_EQ(handlers.begun, room);
      clients.erase(answered(clients));  // closes it
    }
    echoing.close_and_join();
    EXPECT_EQ(handlers.most, 3);
  });
}

TEST_P(Serve, IsBoundByTheLimitOfDescriptorsUnlessToldOtherwise) {
  in_runtime([] {
    const descriptor_limit limit(1024);
    server echoing;
    gauge handlers;
    echoing.start(counted_echo(handlers), {.descriptors_per_connection = 96});  // (1024 - 64) / 96 is 10
    auto clients = echoing.clients(12);
    say_hello(clients);
    wait_until([&] { return handlers.begun == 10; });
    let_others_run();
    EXPECT_EQ(handlers.begun, 10);
    while (!clients.empty()) clients.erase(answered(clients));  // closes it
    echoing.close_and_join();
    EXPECT_EQ(handlers.most, 10);
  });
}

TEST_P(Serve, ReturnsWhenItIsClosedIdle) {
  in_runtime([] {
    for (int i = 0; i < 20; ++i) {
      server idle;
      if (i % 5 == 0) idle.listener.close();  // before it began
      idle.start(echo, {.max_connections = static_cast<std::size_t>(i % 3)});
      if (i % 2) let_others_run();
      idle.close_and_join();
    }
    net::tcp_listener none;
    task_group group;
    none.serve(group, echo);
  });
}

TEST_P(Serve, ReturnsWhenItIsClosedFull) {
  in_runtime([] {
    for (int i = 0; i < 20; ++i) {
      server full;
      gauge handlers;
      full.start(counted_echo(handlers), {.max_connections = 2, .grace = 0s});
      auto clients = full.clients(3);
      wait_until([&] { return handlers.alive == 2; });
      net::wait_fd(full.listener.native_handle(),
                   net::interest::read);  // the third is in the backlog, whichever of them that is
      full.close_and_join();
      EXPECT_EQ(handlers.most, 2) << "the slot that the close gives is nobody's";
      for (auto& client : clients) EXPECT_EQ(read_all(client), "") << "no reset, of the third neither";
    }
  });
}

// The listener's owner does not have to know whether the close that ended serve has returned.
TEST_P(Serve, ListenerMayEndAsSoonAsServeReturns) {
  in_runtime([] {
    for (int i = 0; i < 200; ++i) {
      auto listener = std::make_unique<net::tcp_listener>(loopback());
      auto closer = spawn([open = listener.get()] { open->close(); });
      task_group group;
      listener->serve(group, echo);
      listener.reset();
      closer.get();
    }
  });
}

TEST_P(Serve, CallsOneHandlerObjectThatNeedNotBeCopied) {
  in_runtime([] {
    server counting;
    std::atomic<int>* seen = nullptr;
    auto count = std::make_unique<std::atomic<int>>(0);
    seen = count.get();
    task_group group;
    auto serving = spawn([&, count = std::move(count)]() mutable {
      counting.listener.serve(group, [count = std::move(count)](net::tcp_stream& stream) {
        ++*count;
        echo(stream);
      });
    });
    auto clients = counting.clients(10);
    for (auto& client : clients) expect_echo(client);
    EXPECT_EQ(*seen, 10);
    counting.listener.close();
    serving.get();
  });
}

TEST_P(Serve, OutlastsAWantOfDescriptorsWithoutLosingAConnection) {
  in_runtime([] {
    server scarce;
    std::atomic<int> begun{0};
    auto clients = scarce.clients(10);
    say_hello(clients);
    std::vector<net::tcp_stream> served;  // who stay, and keep their descriptors
    std::optional<hoard> everything(std::in_place);
    scarce.start([&](net::tcp_stream& stream) {
      ++begun;
      echo(stream);
    });
    let_others_run();
    EXPECT_EQ(begun, 0);
    for (int freed = 0; freed < 10; ++freed) {
      everything->give(1);
      const auto one = answered(clients);
      EXPECT_EQ(begun, freed + 1);
      served.push_back(std::move(*one));
      clients.erase(one);
    }
    everything.reset();
    scarce.close_and_join();
  });
}

TEST_P(Serve, OutlastsAWantOfFibersWithoutLosingAConnection) {
  in_runtime(
      [] {
        server scarce;
        gauge handlers;
        scarce.start(counted_echo(handlers));
        auto clients = scarce.clients(20);
        say_hello(clients);
        wait_until([&] { return handlers.alive == 4; });
        while (!clients.empty()) clients.erase(answered(clients));  // closes it
        scarce.close_and_join();
        EXPECT_EQ(handlers.most, 4);
      },
      {.max_fibers = 6});  // the main one, the server's, and four handlers
}

}  // namespace
}  // namespace ulexite::test
