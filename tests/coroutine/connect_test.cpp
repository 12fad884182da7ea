// Connections, datagrams and descriptors of others in coroutines: how a wait ends, and what an error says.

#include "net/net_fixture.hpp"
#include "ways.hpp"

#include <ulexite/net/unix.hpp>

#include <fcntl.h>
#include <sys/eventfd.h>

#include <vector>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class CoConnect : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(CoConnect);

// A listener that answers no further connection.
struct full_listener {
  net::tcp_listener at{loopback(), {.backlog = 0}};
  std::vector<net::tcp_stream> queued;
  full_listener() {
    std::error_code error;
    for (;;) {
      auto next = net::tcp_stream::connect(at.local_endpoint(), {.timeout = 20ms}, error);
      if (error) return;
      queued.push_back(std::move(next));
    }
  }
};

template <class Operation>
std::string message_of(Operation operation) {
  return spawn([&]() -> task<std::string> {
           try {
             (void)co_await operation();
           } catch (const std::system_error& error) {
             co_return error.what();
           }
           co_return "nothing";
         })
      .get();
}

TEST_P(CoConnect, ConnectsOverTcpAndOverAUnixSocket) {
  in_runtime([] {
    const std::string path = scratch_path("co_connect");
    for (const net::endpoint& to : {loopback(), net::endpoint::local(path)}) {
      net::tcp_listener listener(to);
      std::vector<join_handle<>> clients;
      for (int i = 0; i < 20; ++i)
        clients.push_back(spawn([&]() -> task<> {
          net::tcp_stream stream = co_await co_connect(listener.local_endpoint(), {.timeout = bound});
          EXPECT_EQ(stream.remote_endpoint(), listener.local_endpoint());
          co_await co_write(stream, "x");
          char got = 0;
          EXPECT_EQ(co_await co_read(stream, &got, 1), 1u);
          EXPECT_EQ(got, 'y');
        }));
      for (int i = 0; i < 20; ++i) {
        net::tcp_stream peer = listener.accept();
        char got;
        EXPECT_EQ(peer.read(&got, 1), 1u);
        peer.write("y");
      }
      for (auto& each : clients) each.get();
    }
  });
}

TEST_P(CoConnect, RefusalsNameTheEndpoints) {
  in_runtime([] {
    const refusing_port nobody;
    for (const net::endpoint& to : {nobody.at(), net::endpoint::local("/nonexistent/x")}) {
      const net::connect_options options{.local = net::endpoint::parse("127.0.0.1:0")};
      for (const net::connect_options& each : {net::connect_options(), options}) {
        std::string said;
        try {
          (void)net::tcp_stream::connect(to, each);
        } catch (const std::system_error& error) {
          said = error.what();
        }
        EXPECT_NE(said, "");
        EXPECT_EQ(message_of([&] { return co_connect(to, each); }), said);
      }
    }
  });
}

TEST_P(CoConnect, AWaitEndsByItsTimeADeadlineOrAStop) {
  in_runtime([] {
    const full_listener full;
    const net::endpoint to = full.at.local_endpoint();
    EXPECT_NE(message_of([&] { return co_connect(to, {.timeout = 2ms}); }).find("timed out"), std::string::npos);
    EXPECT_THROW(spawn([&]() -> task<> {
                   const deadline_scope limit(2ms);
                   (void)co_await co_connect(to);
                 }).get(),
                 deadline_exceeded);
    auto waits = spawn([&]() -> task<> { (void)co_await co_connect(to); });
    wait_until_others_wait();
    waits.request_stop();
    EXPECT_THROW(waits.get(), operation_cancelled);
    auto stopped = spawn([&]() -> task<> { (void)co_await co_connect(to); });
    stopped.request_stop();
    EXPECT_THROW(stopped.get(), operation_cancelled);
  });
}

// A Unix listener makes no event when it has room again.
TEST_P(CoConnect, WaitsForAFullUnixBacklog) {
  const auto at = net::endpoint::local("@" + scratch_path("co_backlog"));
  in_runtime([&] {
    net::tcp_listener listener(at, {.backlog = 0});
    auto first = net::tcp_stream::connect(at);
    EXPECT_NE(message_of([&] { return co_connect(at, {.timeout = 5ms}); }).find("timed out"), std::string::npos);
    auto second = spawn([&]() -> task<bool> { co_return (co_await co_connect(at, {.timeout = bound})).is_open(); });
    let_others_run();
    (void)listener.accept();
    EXPECT_TRUE(second.get());
  });
}

TEST_P(CoConnect, DatagramsGoBackToTheirSenders) {
  in_runtime([] {
    net::udp_socket server(loopback());
    server.expires_after(bound);
    const int each = times(50);
    auto answers = spawn([&]() -> task<> {
      for (int i = 0; i < 4 * each; ++i) {
        char data[100];
        net::endpoint from;
        const std::size_t size = co_await co_receive_from(server, data, sizeof data, from);
        co_await co_send_to(server, data, size, from);
      }
    });
    std::vector<join_handle<>> clients;
    for (int i = 0; i < 4; ++i)
      clients.push_back(spawn([&, i]() -> task<> {
        net::udp_socket mine(loopback());
        mine.connect(server.local_endpoint());
        mine.expires_after(bound);
        for (int k = 0; k < each; ++k) {
          const std::string text = std::to_string(100 * i + k);
          co_await co_send(mine, text);
          char back[100];
          const std::size_t size = co_await co_receive(mine, back, sizeof back);
          EXPECT_EQ(std::string(back, size), text);
        }
      }));
    for (auto& each_client : clients) each_client.get();
    answers.get();
  });
}

// Only one watches the socket. The others keep their stacks, and must not pass its turn round.
TEST_P(CoConnect, SeveralThatReceiveAtOneSocketSleep) {
  in_runtime([] {
    net::udp_socket at(loopback()), by(loopback());
    std::atomic<int> got{0};
    std::vector<join_handle<>> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(spawn([&]() -> task<> {
        char data[10];
        net::endpoint from;
        for (;;) {
          co_await co_receive_from(at, data, sizeof data, from);
          ++got;
        }
      }));
    let_others_run();
    by.send_to("x", 1, at.local_endpoint());
    while (got == 0) this_fiber::sleep_for(1ms);
    const auto before = current_runtime().metrics().dispatches;
    this_fiber::sleep_for(20ms);
    EXPECT_LT(current_runtime().metrics().dispatches - before, 500u);
    for (auto& each : all) each.request_stop();
    for (auto& each : all) each.join();
    EXPECT_EQ(got, 1);
  });
}

TEST_P(CoConnect, DatagramsFailAsTheirFunctionsDo) {
  in_runtime([] {
    net::udp_socket here(loopback()), there(loopback()), none;
    char data[10];
    there.send_to("long", here.local_endpoint());
    EXPECT_NE(message_of([&] { return co_receive(here, data, 2); }).find("Message too long"), std::string::npos);
    EXPECT_EQ(std::string(data, 2), "lo");
    const auto sends = [&](net::udp_socket& by) {
      return message_of([&]() -> task<int> {
        co_await co_send_to(by, "x", net::endpoint::parse("[::1]:9"));
        co_return 0;
      });
    };
    EXPECT_NE(sends(here).find("sending to [::1]:9"), std::string::npos);
    EXPECT_NE(sends(none).find("Bad file descriptor"), std::string::npos);
    here.expires_after(1ms);
    EXPECT_NE(message_of([&] { return co_receive(here, data, 2); }).find("timed out"), std::string::npos);
    here.expires_never();
    auto waits = spawn([&]() -> task<> { (void)co_await co_receive(here, data, sizeof data); });
    wait_until_others_wait();
    here.close();
    EXPECT_THROW(waits.get(), std::system_error);
  });
}

TEST_P(CoConnect, UnixDatagramsWaitForRoom) {
  const auto at = net::endpoint::local("@" + scratch_path("co_datagrams"));
  in_runtime([&] {
    net::unix_datagram receiver(at), sender(net::endpoint::local("@" + scratch_path("co_sender")));
    const int count = 100;
    auto sends = spawn([&]() -> task<> {
      for (int i = 0; i < count; ++i) co_await co_send_to(sender, std::to_string(i), at);
    });
    wait_until_others_wait();
    for (int i = 0; i < count; ++i) {
      char data[10];
      const std::size_t size = receiver.receive(data, sizeof data);
      EXPECT_EQ(std::string(data, size), std::to_string(i));
    }
    sends.get();
  });
}

TEST_P(CoConnect, DescriptorsAreWaitedForAsOftenAsNeeded) {
  in_runtime([] {
    const int counter = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int rounds = times(200);
    spawn([&]() -> task<> {
      EXPECT_EQ(co_await co_wait_fd(counter, net::interest::read, 1us), net::interest::none);
      EXPECT_EQ(co_await co_wait_fd(counter, net::interest::read_write), net::interest::write);
      EXPECT_EQ(co_await co_wait_fd(file, net::interest::read), net::interest::read) << "which cannot be watched";
    }).get();
    auto reads = spawn([&]() -> task<> {
      eventfd_t total = 0;
      while (total < static_cast<eventfd_t>(rounds)) {
        EXPECT_EQ(co_await co_wait_fd(counter, net::interest::read), net::interest::read);
        eventfd_t more = 0;
        if (::eventfd_read(counter, &more) == 0) total += more;
      }
      net::fd_interest both[] = {{counter}, {-1, net::interest::none}};
      EXPECT_EQ(co_await co_wait_any(both, 1us), 0u);
    });
    for (int i = 0; i < rounds; ++i) {
      EXPECT_EQ(::eventfd_write(counter, 1), 0);
      if (i % 3 == 0) this_fiber::yield();
    }
    reads.get();
    EXPECT_NE(message_of([] { return co_wait_fd(-1, net::interest::read); }).find("waiting to read fd -1"),
              std::string::npos);
    ::close(file);
    ::close(counter);
  });
}

}  // namespace
