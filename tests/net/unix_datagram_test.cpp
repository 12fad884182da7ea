// Datagrams over Unix sockets: names, senders that wait for their receiver, errors.

#include "net_fixture.hpp"

#include <ulexite/net/unix.hpp>
#include <ulexite/sync/cancellation.hpp>

#include <filesystem>
#include <fstream>
#include <thread>
#include <type_traits>

namespace ulexite::test {
namespace {

static_assert(std::is_same_v<net::unix_stream, net::tcp_stream> &&
              std::is_same_v<net::unix_listener, net::tcp_listener> &&
              std::is_same_v<net::unix_datagram, net::udp_socket>);

class UnixDatagram : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(UnixDatagram);

net::unix_datagram bounded(const std::string& path) {
  net::unix_datagram made(net::endpoint::local(path));
  made.expires_after(bound);
  return made;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string receive_text(net::unix_datagram& from) {
  char text[2000];
  return {text, from.receive(text, sizeof text)};
}

TEST_P(UnixDatagram, ExchangesDatagramsByPathAndByAbstractName) {
  in_runtime([] {
    for (const std::string& prefix : {std::string(), std::string("@")}) {
      auto left = bounded(prefix + scratch_path("left")), right = bounded(prefix + scratch_path("right"));
      left.send_to("question", right.local_endpoint());
      char text[100];
      net::endpoint from;
      ASSERT_EQ(right.receive_from(text, sizeof text, from), 8u);
      EXPECT_EQ(from, left.local_endpoint());
      right.send_to("answer", from);
      EXPECT_EQ(receive_text(left), "answer");
    }
  });
}

TEST_P(UnixDatagram, PathGoesWithTheSocketAndNoSooner) {
  const std::string path = scratch_path("path"), other = scratch_path("other");
  in_runtime([&] {
    {
      auto socket = bounded(path);
      EXPECT_EQ(code_of([&] { bounded(path); }), std::errc::address_in_use);
      EXPECT_TRUE(exists(path)) << "it is not the second one's to remove";
      auto moved = std::move(socket);
      socket.close();
      EXPECT_TRUE(exists(path));
      moved = bounded(other);
      EXPECT_FALSE(exists(path));
      moved.close();
      EXPECT_FALSE(exists(other));
      bounded(other).send_to("x", bounded(path).local_endpoint());
    }
    EXPECT_FALSE(exists(path));
    EXPECT_FALSE(exists(other));
  });
}

// Servers remove a path that is there when they start.
TEST_P(UnixDatagram, PathOfASuccessorStays) {
  const std::string path = scratch_path("successor");
  in_runtime([&] {
    const auto at = net::endpoint::local(path);
    {
      net::unix_listener old(at);
      ::unlink(path.c_str());
      net::unix_listener next(at);
      old.close();
      EXPECT_TRUE(exists(path));
      EXPECT_TRUE(net::unix_stream::connect(at).is_open());
    }
    EXPECT_FALSE(exists(path));
    auto old = bounded(path);
    std::filesystem::remove(path);
    std::ofstream(path) << "a file";
    old.close();
    EXPECT_TRUE(std::filesystem::remove(path));
  });
}

TEST_P(UnixDatagram, PathOfAReleasedSocketIsTheCallers) {
  const std::string path = scratch_path("released");
  in_runtime([&] {
    const int fd = bounded(path).release();
    EXPECT_TRUE(exists(path));
    net::unix_datagram::adopt(fd).close();
    EXPECT_TRUE(exists(path)) << "whoever bound it removes it";
    EXPECT_EQ(::unlink(path.c_str()), 0);
  });
}

TEST_P(UnixDatagram, AcceptedStreamsLeaveTheListenersPathAlone) {
  const std::string path = scratch_path("listener");
  in_runtime([&] {
    net::unix_listener listener(net::endpoint::local(path));
    auto client = net::unix_stream::connect(listener.local_endpoint());
    listener.accept().close();
    EXPECT_TRUE(exists(path));
    listener.close();
    EXPECT_FALSE(exists(path));
  });
}

TEST_P(UnixDatagram, SenderWithoutANameIsNowhere) {
  in_runtime([] {
    auto server = bounded("@" + scratch_path("server"));
    net::unix_datagram client;
    client.connect(server.local_endpoint());
    client.send("anonymous");
    char text[100];
    net::endpoint from = server.local_endpoint();
    EXPECT_EQ(server.receive_from(text, sizeof text, from), 9u);
    EXPECT_EQ(from, net::endpoint());
    EXPECT_EQ(client.local_endpoint().str(), "unix:");
  });
}

// The receiver takes nothing until the sender has met a full queue at least once, however long that is.
void expect_all_arrive(net::unix_datagram& from, net::unix_datagram& to, const std::function<void(std::string)>& send) {
  constexpr int count = 1000;
  auto sender = spawn([&] {
    for (int i = 0; i < count; ++i) send(std::to_string(i));
  });
  let_others_run();
  for (int i = 0; i < count; ++i) ASSERT_EQ(receive_text(to), std::to_string(i));
  sender.get();
  EXPECT_TRUE(from.is_open());
}

TEST_P(UnixDatagram, SenderWaitsForAReceiverThatIsFull) {
  in_runtime([] {
    auto from = bounded("@" + scratch_path("from")), to = bounded("@" + scratch_path("to"));
    expect_all_arrive(from, to, [&](const std::string& text) { from.send_to(text, to.local_endpoint()); });
    from.connect(to.local_endpoint());
    expect_all_arrive(from, to, [&](const std::string& text) { from.send(text); });
    expect_all_arrive(from, to, [&](const std::string& text) { from.send_to(text, to.local_endpoint()); });
  });
}

std::error_code send_until_error(net::unix_datagram& from, const net::endpoint& to) {
  std::error_code error;
  while (!error) to == net::endpoint() ? from.send("x", error) : from.send_to("x", to, error);
  return error;
}

TEST_P(UnixDatagram, WaitOfASenderEndsOtherwise) {
  in_runtime([] {
    auto to = bounded("@" + scratch_path("to"));
    for (const net::endpoint& named : {to.local_endpoint(), net::endpoint()}) {
      auto from = bounded("@" + scratch_path("from"));
      from.connect(to.local_endpoint());
      from.expires_after(1ms);
      EXPECT_EQ(send_until_error(from, named), std::make_error_code(std::errc::timed_out));
      from.expires_after(bound);
      EXPECT_THROW(timeout(1ms,
                           [&] {
                             for (;;) named == net::endpoint() ? from.send("x") : from.send_to("x", named);
                           }),
                   deadline_exceeded);
      auto stopped = spawn([&] { return send_until_error(from, named); });
      let_others_run();
      stopped.request_stop();
      EXPECT_EQ(stopped.get(), errc::cancelled);
      auto closed = spawn([&] { return send_until_error(from, named); });
      let_others_run();
      from.close();
      EXPECT_EQ(closed.get(), std::errc::bad_file_descriptor);
    }
  });
}

TEST_P(UnixDatagram, NobodyThereIsAnError) {
  const std::string path = scratch_path("nobody");
  in_runtime([&] {
    auto from = bounded("@" + scratch_path("from"));
    const auto to = net::endpoint::local(path);
    EXPECT_EQ(code_of([&] { from.send_to("x", to); }), std::errc::no_such_file_or_directory);
    EXPECT_EQ(code_of([&] { from.connect(to); }), std::errc::no_such_file_or_directory);
    EXPECT_EQ(code_of([&] { net::unix_datagram().connect(to); }), std::errc::no_such_file_or_directory);
    std::ofstream(path) << "no socket";
    EXPECT_EQ(code_of([&] { from.send_to("x", to); }), std::errc::connection_refused);
    EXPECT_EQ(::unlink(path.c_str()), 0);
    {
      auto peer = bounded(path);
      from.connect(to);
    }
    EXPECT_EQ(code_of([&] { from.send("x"); }), std::errc::connection_refused);
  });
}

TEST_P(UnixDatagram, AdoptsASocketPair) {
  in_runtime([] {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    auto left = net::unix_datagram::adopt(ends[0]), right = net::unix_datagram::adopt(ends[1]);
    auto receiver = spawn([&] { return receive_text(right); });
    let_others_run();
    left.send("through the pair");
    EXPECT_EQ(receiver.get(), "through the pair");
    char c;
    std::error_code error;
    auto waiting = spawn([&] { return right.receive(&c, 1, error); });
    let_others_run();
    right.close();
    EXPECT_EQ(waiting.get(), 0u);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
  });
}

TEST(UnixDatagramOnPlainThreads, WaitAndAreWokenByAClose) {
  for (int i = 0; i < 10; ++i) {
    auto to = bounded("@" + scratch_path("to")), idle = bounded("@" + scratch_path("idle"));
    auto from = bounded("@" + scratch_path("from"));
    from.connect(to.local_endpoint());
    std::thread sender([&] { EXPECT_EQ(send_until_error(from, {}), std::errc::bad_file_descriptor); });
    std::thread receiver([&] {
      char c;
      std::error_code error;
      idle.receive(&c, 1, error);
      EXPECT_EQ(error, std::errc::bad_file_descriptor);
    });
    for (int turn = 0; turn < i * 100; ++turn) std::this_thread::yield();
    from.close();
    idle.close();
    sender.join();
    receiver.join();
  }
}

TEST(UnixDatagram, WithoutAPeerItIsNotConnected) {
  net::udp_socket alone(net::endpoint::local("@ulexite_alone." + std::to_string(::getpid())));
  EXPECT_EQ(code_of([&] { alone.send("x"); }), std::errc::not_connected);
}

}  // namespace
}  // namespace ulexite::test
