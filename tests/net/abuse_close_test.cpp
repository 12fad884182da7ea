// Sockets are closed, or their users cancelled, during all kinds of waits: thousands of times, at random moments.

#include "abuse.hpp"

#include <vector>

namespace ulexite::test {
namespace {

class AbuseClose : public AbuseTest {
 protected:
  // body(random) so often, in turns of some fibers.
  template <class Body>
  void repeat(int rounds, Body body) {
    const std::uint64_t seed = test_seed();
    in_runtime([&] {
      task_group group;
      for (std::uint64_t i = 0; i < 4; ++i)
        group.spawn([&, i] {
          for (int round = 0; round < times(rounds) / 4 && !HasFailure(); ++round) {
            detail::random random(seed + i * 1'000'003 + static_cast<std::uint64_t>(round));
            body(random);
          }
        });
      group.wait();
    });
  }
};
ULEXITE_ABUSE_WORKERS(AbuseClose);

stream_pair some_pair(detail::random& random) {
  return random.below(4) == 0 ? stream_pair::tcp() : stream_pair::unix_sockets();
}

// Reads or writes until that fails, and returns why.
std::error_code read_until_error(net::tcp_stream& stream) {
  std::error_code error;
  char buffer[100];
  while (stream.read_some(buffer, sizeof buffer, error) > 0) {
  }
  return error;
}
std::error_code write_until_error(net::tcp_stream& stream, std::size_t size) {
  const std::string block(size, 'x');
  std::error_code error;
  while (!error) stream.write(block, error);
  return error;
}

// At the same time, the sending fiber of the other side: bytes, then perhaps an end or a reset.
void disturb(net::tcp_stream& stream, detail::random random) {
  std::error_code error;
  for (std::uint32_t n = random.below(4); n > 0; --n) {
    stream.write("some data", error);
    yield_times(random.below(5));
  }
}

TEST_P(AbuseClose, CloseRacesWithARead) {
  repeat(4000, [](detail::random& random) {
    auto pair = some_pair(random);
    auto reader = spawn([&] { return read_until_error(pair.left); });
    auto sender = spawn([&, mine = detail::random(random.next())] { disturb(pair.right, mine); });
    yield_times(random.below(12));
    pair.left.close();
    EXPECT_EQ(reader.get(), std::errc::bad_file_descriptor);
    sender.get();
  });
}

TEST_P(AbuseClose, CloseRacesWithAWrite) {
  repeat(1000, [](detail::random& random) {
    auto pair = some_pair(random);
    auto writer = spawn([&, size = 1 + random.below(60'000)] { return write_until_error(pair.left, size); });
    auto reader = spawn([&, count = random.below(4)] {
      std::error_code error;
      std::string buffer(50'000, '\0');
      for (std::uint32_t n = count; n > 0 && !error; --n) pair.right.read_some(buffer.data(), buffer.size(), error);
    });
    yield_times(random.below(12));
    pair.left.close();
    EXPECT_EQ(writer.get(), std::errc::bad_file_descriptor);
    reader.get();
  });
}

TEST_P(AbuseClose, SeveralCloseUnderReaderAndWriter) {
  repeat(2000, [](detail::random& random) {
    auto pair = some_pair(random);
    auto reader = spawn([&] { return read_until_error(pair.left); });
    auto writer = spawn([&] { return write_until_error(pair.left, 10'000); });
    task_group closers;
    for (int i = 0; i < 3; ++i)
      closers.spawn([&, pause = random.below(8)] {
        yield_times(pause);
        pair.left.close();
      });
    EXPECT_EQ(reader.get(), std::errc::bad_file_descriptor);
    EXPECT_EQ(writer.get(), std::errc::bad_file_descriptor);
    closers.wait();
  });
}

TEST_P(AbuseClose, ACloseAndAStopRequestRaceForOneRead) {
  repeat(4000, [](detail::random& random) {
    auto pair = some_pair(random);
    auto reader = spawn([&] { return read_until_error(pair.left); });
    auto closer = spawn([&, pause = random.below(10)] {
      yield_times(pause);
      pair.left.close();
    });
    yield_times(random.below(10));
    reader.request_stop();
    const std::error_code why = reader.get();
    EXPECT_TRUE(why == std::errc::bad_file_descriptor || why == errc::cancelled) << why.message();
    closer.get();
  });
}

TEST_P(AbuseClose, CloseRacesWithAnAcceptAndWithConnects) {
  repeat(1000, [](detail::random& random) {
    net::tcp_listener listener(loopback(), {.reuse_port = true});
    const refusing_port afterwards(listener.local_endpoint());  // who comes after the close must not meet a stranger
    auto acceptor = spawn([&] {
      std::error_code error;
      while (!error) (void)listener.accept(error);
      return error;
    });
    task_group clients;
    for (int i = 0; i < 3; ++i)
      clients.spawn([&, pause = random.below(8)] {
        yield_times(pause);
        std::error_code error;
        auto stream = net::tcp_stream::connect(listener.local_endpoint(), {}, error);
        // Linux may forget to reset a connection that is made while the listener is closed: it stays half-open.
        stream.expires_after(50ms);
        if (!error) read_until_error(stream);
      });
    yield_times(random.below(20));
    listener.close();
    EXPECT_EQ(acceptor.get(), std::errc::bad_file_descriptor);
    clients.wait();
  });
}

TEST_P(AbuseClose, AStopRequestRacesWithAConnect) {
  const auto at = net::endpoint::local("@" + scratch_path("abuse_close"));
  const net::tcp_listener nobody_accepts(at, {.backlog = 0});
  const net::tcp_listener somebody(loopback(), {.backlog = 0});
  repeat(1000, [&](detail::random& random) {
    const auto& to = random.below(2) == 0 ? at : somebody.local_endpoint();
    auto client = spawn([&] {
      std::error_code error;
      (void)net::tcp_stream::connect(to, {}, error);
      return error;
    });
    yield_times(random.below(10));
    client.request_stop();
    const std::error_code why = client.get();
    EXPECT_TRUE(!why || why == errc::cancelled) << why.message();
  });
}

}  // namespace
}  // namespace ulexite::test
