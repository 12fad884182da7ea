// How tcp_listener::serve ends: the drain, a stop, a deadline, the end of the runtime.

#include "serve_fixture.hpp"

#include "support/cancellation.hpp"

#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/event.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace ulexite::test {
namespace {

class ServeEnd : public ServeTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(ServeEnd);

// Handlers, in a read or not, get the data that has arrived and then the end. They may still answer.
TEST_P(ServeEnd, DrainEndsReadsBehindWhatHasArrived) {
  in_runtime([] {
    for (const bool waits_in_read : {false, true}) {
      server draining;
      event begun, go;
      draining.start([&](net::tcp_stream& stream) {
        net::wait_fd(stream.native_handle(), net::interest::read);  // the question has arrived
        begun.set();
        if (!waits_in_read) go.wait();
        stream.write(read_all(stream) + "!");
      });
      auto client = draining.client();
      client.write("hello");
      begun.wait();
      let_others_run();
      draining.listener.close();
      go.set();
      EXPECT_EQ(read_all(client), "hello!");
      draining.running->get();
    }
  });
}

// A server whose only place an idle client has. Five more clients are in the backlog, and have said hello.
struct full_server : server {
  full_server() {
    start(counted_echo(handlers), {.max_connections = 1, .grace = 0s});
    idle.emplace(client());
    wait_until([&] { return handlers.alive == 1; });
    waiting = clients(5);
    say_hello(waiting);
  }
  gauge handlers;
  std::optional<net::tcp_stream> idle;
  std::vector<net::tcp_stream> waiting;
};

// Connections that are in the backlog at the close, because there is no room for them, are answered too.
TEST_P(ServeEnd, BacklogIsServedToItsEnd) {
  in_runtime([] {
    full_server full;
    full.close_and_join();
    EXPECT_EQ(read_all(*full.idle), "");
    for (auto& client : full.waiting) EXPECT_EQ(read_all(client), "hello");
    EXPECT_EQ(full.handlers.most, 1);
  });
}

// The callback of the second close runs before the callback of serve.
TEST_P(ServeEnd, ASecondCloseLeavesTheBacklogToServe) {
  in_runtime([] {
    full_server full;
    const std::stop_callback again(full.listener.closing_token(), [&] { full.listener.close(); });
    full.close_and_join();
    EXPECT_FALSE(full.listener.is_open());
    for (auto& client : full.waiting) EXPECT_EQ(read_all(client), "hello");
  });
}

// Its first request is on the way while the listener is closed. The grace is endless here; the end of all connections
// ends it.
TEST_P(ServeEnd, ANewConnectionMayStillSendItsFirstRequest) {
  in_runtime([] {
    server closing;
    event begun;
    closing.start(
        [&](net::tcp_stream& stream, const std::stop_token& told) {
          begun.set();
          echo(stream);
          EXPECT_FALSE(told.stop_requested());
        },
        {.drain_time = bound, .grace = bound});
    auto client = closing.client();
    begun.wait();
    closing.listener.close();
    let_others_run();
    expect_echo(client);
    client.close();
    closing.running->get();
  });
}

TEST_P(ServeEnd, TheGraceIsAPartOfTheDrainTime) {
  in_runtime([] {
    server closing;
    closing.start(echo, {.drain_time = 1ms, .grace = bound});
    auto client = closing.client();
    expect_echo(client);
    closing.close_and_join();
    EXPECT_EQ(read_all(client), "");
  });
}

// A waiter in accept still uses the descriptor when close returns.
TEST_P(ServeEnd, NobodyCanConnectAfterTheClose) {
  in_runtime([] {
    for (int i = 0; i < 50; ++i) {
      server closed;
      closed.listener = net::tcp_listener(loopback(), {.reuse_port = true});
      const refusing_port afterwards(closed.listener.local_endpoint());
      closed.start([](net::tcp_stream&) {});
      let_others_run();
      closed.listener.close();
      std::error_code error;
      EXPECT_FALSE(net::tcp_stream::connect(closed.listener.local_endpoint(), {.timeout = bound}, error).is_open());
      EXPECT_EQ(error, std::errc::connection_refused);
      closed.running->get();
    }
  });
}

TEST_P(ServeEnd, HandlerWithATokenIsToldAndItsReadsAreNotCut) {
  in_runtime([] {
    server draining;
    event begun, told;
    draining.start([&](net::tcp_stream& stream, const std::stop_token& closing) {
      const std::stop_callback tell(closing, [&] { told.set(); });
      begun.set();
      echo(stream);
      EXPECT_TRUE(closing.stop_requested());
    });
    auto client = draining.client();
    begun.wait();
    EXPECT_FALSE(told.is_set());
    draining.listener.close();
    told.wait();
    expect_echo(client);
    EXPECT_FALSE(draining.running->done());
    client.close();
    draining.running->get();
  });
}

TEST_P(ServeEnd, GroupIsStoppedWhenTheDrainTimeIsOver) {
  in_runtime([] {
    for (const auto drain_time : {0ms, 5ms}) {
      server stubborn;
      gauge handlers;
      std::atomic<int> errors{0};
      stubborn.start(
          [&](net::tcp_stream&) {
            const gauge::one here(handlers);
            wait_for_ever();
          },
          {.drain_time = drain_time, .on_error = [&](const net::endpoint&, const std::exception_ptr&) { ++errors; }});
      auto clients = stubborn.clients(5);
      wait_until([&] { return handlers.alive == 5; });
      const auto start = steady_clock::now();
      stubborn.close_and_join();
      EXPECT_GE(steady_clock::now() - start, drain_time);
      EXPECT_EQ(handlers.alive, 0);
      EXPECT_EQ(errors, 0) << "to be stopped is no error";
      EXPECT_EQ(stubborn.group.failures(), 0u);
      for (auto& client : clients) EXPECT_EQ(read_all(client), "");
    }
  });
}

TEST_P(ServeEnd, StopOfTheCallerEndsTheConnectionsAndIsThrownOn) {
  in_runtime([] {
    for (const bool while_draining : {false, true}) {
      server stopped;
      gauge handlers;
      stopped.start([&](net::tcp_stream& stream, const std::stop_token&) {
        const gauge::one here(handlers);
        echo(stream);
      });
      auto clients = stopped.clients(5);
      wait_until([&] { return handlers.alive == 5; });
      if (while_draining) stopped.listener.close();
      let_others_run();
      stopped.running->request_stop();
      EXPECT_THROW(stopped.running->get(), operation_cancelled);
      EXPECT_EQ(handlers.alive, 0);
      EXPECT_EQ(stopped.listener.is_open(), !while_draining);
      for (auto& client : clients) EXPECT_EQ(read_all(client), "");
    }
  });
}

TEST_P(ServeEnd, DeadlineOfTheCallerEndsTheConnectionsAndIsThrownOn) {
  in_runtime([] {
    server bounded;
    gauge handlers;
    auto client = bounded.client();
    EXPECT_THROW(timeout(20ms, [&] { bounded.listener.serve(bounded.group, counted_echo(handlers)); }),
                 deadline_exceeded);
    EXPECT_EQ(handlers.alive, 0);
    EXPECT_EQ(bounded.group.failures(), 0u);
  });
}

// Two clients come, and there is room for one of them.
void expect_end_at_close(server& scarce) {
  gauge handlers;
  scarce.start(
      [&](net::tcp_stream&, const std::stop_token&) {
        const gauge::one here(handlers);
        wait_for_ever();
      },
      {.drain_time = 0s});
  const std::size_t before = open_descriptors();
  auto clients = scarce.clients(2);
  wait_until([&] { return open_descriptors() == before + 4; });  // both are accepted
  wait_until([&] { return handlers.alive == 1; });
  scarce.close_and_join();
  EXPECT_EQ(handlers.most, 1);
  EXPECT_EQ(handlers.alive, 0);
  for (auto& client : clients) EXPECT_EQ(read_all(client), "");
}

// A connection for which there is no fiber must not keep the drain from beginning.
TEST_P(ServeEnd, IsClosedWhileItWaitsForAFiber) {
  in_runtime(
      [] {
        server scarce;
        expect_end_at_close(scarce);
      },
      {.max_fibers = 3});
}

TEST_P(ServeEnd, IsClosedWhileItsGroupIsFull) {
  in_runtime([] {
    server scarce(1);
    expect_end_at_close(scarce);
  });
}

TEST_P(ServeEnd, BacklogIsServedAlsoIfItsGroupIsFull) {
  in_runtime([] {
    server scarce(1);
    event go;
    scarce.start([&](net::tcp_stream& client) {
      go.wait();
      client.write("served");
    });
    auto clients = scarce.clients(5);
    wait_until([&] { return scarce.group.size() == 1; });
    scarce.listener.close();
    go.set();
    for (auto& client : clients) EXPECT_EQ(read_all(client), "served");
    scarce.running->get();
  });
}

TEST_P(ServeEnd, EndOfTheRuntimeEndsIt) {
  const auto served = std::make_shared<std::atomic<bool>>(false);
  in_runtime([served] {
    spawn([served] {
      net::tcp_listener listener(loopback());
      auto client = spawn([served, at = listener.local_endpoint()] {
        auto stream = net::tcp_stream::connect(at);
        expect_echo(stream);
        *served = true;  // not before: the handler may see the end before the client does, and not answer it
        wait_for_ever();
      });
      task_group group;
      listener.serve(group, echo);
    }).detach();
    wait_until([&] { return served->load(); });
  });
}

}  // namespace
}  // namespace ulexite::test
