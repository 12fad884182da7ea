// Deadlines, stops and shields in the waits of net.

#include "net_fixture.hpp"

#include <ulexite/sync/cancellation.hpp>

#include <atomic>
#include <thread>

namespace ulexite::test {
namespace {

class TcpDeadline : public NetTest {
 protected:
  // In fibers and on plain threads.
  template <class Body>
  void everywhere(Body body) {
    in_runtime(body);
    body();
  }
};
ULEXITE_ON_ALL_WORKER_COUNTS(TcpDeadline);

void fill(net::tcp_stream& stream) {
  const std::string block(100'000, 'x');
  for (;;) stream.write(block);
}

TEST_P(TcpDeadline, EndsEachWait) {
  everywhere([] {
    auto pair = stream_pair::unix_sockets();
    net::tcp_listener listener(loopback());
    char c;
    EXPECT_THROW(timeout(1ms, [&] { pair.left.read_some(&c, 1); }), deadline_exceeded);
    EXPECT_THROW(timeout(1ms, [&] { pair.left.read(&c, 1); }), deadline_exceeded);
    EXPECT_THROW(timeout(1ms, [&] { (void)listener.accept(); }), deadline_exceeded);
    EXPECT_THROW(timeout(1ms, [&] { net::wait_fd(pair.left.native_handle(), net::interest::read); }),
                 deadline_exceeded);
    EXPECT_THROW(timeout(1ms, [&] { (void)net::wait_fd(pair.left.native_handle(), net::interest::read, bound); }),
                 deadline_exceeded);
    EXPECT_THROW(timeout(1ms, [&] { fill(pair.left); }), deadline_exceeded);
    this_fiber::check();
    pair.right.write("b");
    EXPECT_EQ(pair.left.read_some(&c, 1), 1u) << "nothing was taken, and the stream is as it was";
    EXPECT_EQ(c, 'b');
  });
}

TEST_P(TcpDeadline, IsACodeOfItsOwn) {
  everywhere([] {
    auto pair = stream_pair::unix_sockets();
    net::tcp_listener listener(loopback());
    char c;
    const deadline_scope limit(1ms);
    for (int i = 0; i < 2; ++i) {  // sticky
      std::error_code error;
      EXPECT_EQ(pair.left.read_some(&c, 1, error), 0u);
      EXPECT_EQ(error, errc::deadline_exceeded);
      (void)listener.accept(error);
      EXPECT_EQ(error, errc::deadline_exceeded);
    }
    std::error_code error;
    EXPECT_EQ(pair.left.write_some("x", 1, error), 0u) << "it need not wait, but it is known that time is over";
    EXPECT_EQ(error, errc::deadline_exceeded);
  });
}

TEST_P(TcpDeadline, ANearerExpiryIsATimeOut) {
  everywhere([] {
    auto pair = stream_pair::unix_sockets();
    char c;
    const deadline_scope limit(bound);
    pair.left.expires_after(1ms);
    std::error_code error;
    pair.left.read_some(&c, 1, error);
    EXPECT_EQ(error, std::make_error_code(std::errc::timed_out)) << "the deadline's code only compares as that";
    EXPECT_EQ(net::wait_fd(pair.left.native_handle(), net::interest::read, 1ms), net::interest::none);
    this_fiber::check();
  });
}

TEST_P(TcpDeadline, AStopIsACodeToo) {
  in_runtime([] {
    auto pair = stream_pair::unix_sockets();
    std::atomic<bool> ready{false};
    auto reader = spawn([&] {
      char c;
      std::error_code error;
      ready = true;
      pair.left.read_some(&c, 1, error);
      EXPECT_EQ(error, errc::cancelled);
      error.clear();
      pair.left.write("x", error);
      EXPECT_EQ(error, errc::cancelled);
      pair.left.read_some(&c, 1);
    });
    while (!ready) this_fiber::yield();
    let_others_run();
    reader.request_stop();
    EXPECT_THROW(reader.get(), operation_cancelled);
  });
}

TEST_P(TcpDeadline, AWriteThatIsCutTellsWhatItHasWritten) {
  in_runtime([] {
    const std::string text(10'000'000, 'x');  // more than the socket takes
    for (const bool late : {false, true}) {
      auto pair = stream_pair::unix_sockets();
      std::size_t written = 0;
      auto writer = spawn([&] {
        const deadline_scope limit(late ? 50ms : 1h);
        std::error_code error;
        written = pair.left.write(text, error);
        EXPECT_EQ(error, late ? errc::deadline_exceeded : errc::cancelled);
      });
      char first = 0;
      EXPECT_EQ(pair.right.read_some(&first, 1), 1u) << "it has begun";
      if (!late) writer.request_stop();
      writer.get();
      pair.left.close();
      EXPECT_EQ(read_all(pair.right).size() + 1, written);
    }
  });
}

TEST_P(TcpDeadline, AShieldHidesBoth) {
  in_runtime([] {
    auto pair = stream_pair::unix_sockets();
    std::atomic<bool> ready{false};
    auto reader = spawn([&] {
      const deadline_scope limit(0s);
      while (!this_fiber::stop_requested()) this_fiber::yield();
      char c = 0;
      {
        const shield uninterrupted;
        ready = true;
        EXPECT_EQ(pair.left.read_some(&c, 1), 1u);
      }
      EXPECT_EQ(c, 's');
      pair.left.read_some(&c, 1);
    });
    reader.request_stop();
    while (!ready) this_fiber::yield();
    let_others_run();
    EXPECT_FALSE(reader.done());
    pair.right.write("s");
    EXPECT_THROW(reader.get(), operation_cancelled);
  });
}

TEST_P(TcpDeadline, AShieldOnAPlainThreadHidesADeadline) {
  auto pair = stream_pair::unix_sockets();
  const deadline_scope limit(0s);
  EXPECT_THROW(this_fiber::check(), deadline_exceeded);
  const shield uninterrupted;
  std::thread writer([&] { pair.right.write("w"); });
  char c = 0;
  EXPECT_EQ(pair.left.read_some(&c, 1), 1u);
  EXPECT_EQ(c, 'w');
  writer.join();
}

TEST_P(TcpDeadline, ConnectTimesOut) {
  in_runtime([] {
    net::tcp_listener listener(loopback(), {.backlog = 0});
    std::vector<net::tcp_stream> queued;
    std::error_code error;
    for (int i = 0; i < 10 && !error; ++i)  // a full backlog drops what comes
      queued.push_back(net::tcp_stream::connect(listener.local_endpoint(), {.timeout = 20ms}, error));
    EXPECT_EQ(error, std::errc::timed_out);
  });
}

}  // namespace
}  // namespace ulexite::test
