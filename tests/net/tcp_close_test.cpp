// How operations of streams and listeners end otherwise: by a close, a time-out, a cancellation, a reset, misuse.

#include "net_fixture.hpp"
#include "support/waiting.hpp"

#include <atomic>
#include <memory>
#include <thread>

namespace ulexite::test {
namespace {

class TcpClose : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(TcpClose);

stream_pair make_pair(int i) { return i % 2 ? stream_pair::unix_sockets() : stream_pair::tcp(); }

std::error_code read_one(net::tcp_stream& stream) {
  char c;
  std::error_code error;
  stream.read_some(&c, 1, error);
  return error;
}

std::error_code write_until_error(net::tcp_stream& stream) {
  const std::string block(100'000, 'x');
  std::error_code error;
  while (!error) stream.write(block, error);
  return error;
}

TEST_P(TcpClose, WakesAReader) {
  in_runtime([] {
    for (int i = 0; i < 100; ++i) {
      auto pair = make_pair(i);
      auto reader = spawn([&] { return read_one(pair.left); });
      if (i % 3) let_others_run();
      pair.left.close();
      EXPECT_EQ(reader.get(), std::errc::bad_file_descriptor);
      EXPECT_FALSE(pair.left.is_open());
      EXPECT_EQ(pair.left.native_handle(), -1);
      EXPECT_EQ(read_one(pair.left), std::errc::bad_file_descriptor);
      EXPECT_EQ(read_all(pair.right), "");
    }
  });
}

TEST_P(TcpClose, WakesAWriter) {
  in_runtime([] {
    for (int i = 0; i < 20; ++i) {
      auto pair = make_pair(i);
      auto writer = spawn([&] { return write_until_error(pair.left); });
      if (i % 3) let_others_run();
      pair.left.close();
      EXPECT_EQ(writer.get(), std::errc::bad_file_descriptor);
    }
  });
}

TEST_P(TcpClose, WakesReaderAndWriterTogether) {
  in_runtime([] {
    for (int i = 0; i < 20; ++i) {
      auto pair = make_pair(i);
      auto reader = spawn([&] { return read_one(pair.left); });
      auto writer = spawn([&] { return write_until_error(pair.left); });
      let_others_run();
      pair.left.close();
      EXPECT_EQ(reader.get(), std::errc::bad_file_descriptor);
      EXPECT_EQ(writer.get(), std::errc::bad_file_descriptor);
    }
  });
}

TEST_P(TcpClose, WakesAnAccept) {
  in_runtime([] {
    for (int i = 0; i < 50; ++i) {
      net::tcp_listener listener(loopback());
      auto acceptor = spawn([&] { return code_of([&] { (void)listener.accept(); }); });
      if (i % 3) let_others_run();
      listener.close();
      EXPECT_EQ(acceptor.get(), std::errc::bad_file_descriptor);
      std::error_code error;
      (void)listener.accept(error);
      EXPECT_EQ(error, std::errc::bad_file_descriptor);
    }
  });
}

// An abandoned fiber is no longer a user of a socket: others may use it, and a close frees the port.
TEST_P(TcpClose, AListenerOutlivesTheRuntimeOfItsAcceptor) {
  testing::internal::CaptureStderr();
  net::tcp_listener listener(loopback());
  const net::endpoint where = listener.local_endpoint();
  {
    runtime brief({.threads = GetParam()});
    const auto acceptor = spawn_until_it_waits(brief, [&] { (void)listener.accept(); });
    EXPECT_EQ(brief.shutdown(shutdown_mode::abandon), 1u);
  }
  testing::internal::GetCapturedStderr();
  in_runtime([&] {
    auto client = spawn([&] { return net::tcp_stream::connect(where); });
    net::tcp_stream accepted = listener.accept();
    client.get().write("x");
    EXPECT_EQ(read_all(accepted), "x");
  });
  listener.close();
  const net::tcp_listener next(where);
}

// Readers wait while their sockets are closed and the numbers are reused immediately: no reader gets another's data.
TEST_P(TcpClose, NumberIsNotReusedUnderAReader) {
  in_runtime([] {
    for (int i = 0; i < 200; ++i) {
      auto pair = stream_pair::unix_sockets();
      auto reader = spawn([&] { return read_one(pair.left); });
      if (i % 2) let_others_run();
      auto closer = spawn([&] { pair.left.close(); });
      auto stranger = stream_pair::unix_sockets();
      stranger.right.write("secret");
      EXPECT_EQ(reader.get(), std::errc::bad_file_descriptor);
      closer.get();
      char text[6];
      EXPECT_EQ(stranger.left.read(text, 6), 6u);
    }
  });
}

TEST_P(TcpClose, MovedFromStreamIsClosed) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto moved = std::move(pair.left);
    EXPECT_FALSE(pair.left.is_open());
    EXPECT_EQ(read_one(pair.left), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of([&] { pair.left.write("x"); }), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of([&] { pair.left.shutdown_write(); }), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of([&] { (void)pair.left.remote_endpoint(); }), std::errc::bad_file_descriptor);
    moved = net::tcp_stream();
    EXPECT_EQ(read_all(pair.right), "");
    net::tcp_listener none;
    EXPECT_EQ(code_of([&] { (void)none.accept(); }), std::errc::bad_file_descriptor);
  });
}

TEST_P(TcpClose, ReadsAndWritesTimeOut) {
  in_runtime([] {
    for (int i = 0; i < 2; ++i) {
      auto pair = make_pair(i);
      const auto start = steady_clock::now();
      pair.left.expires_after(20ms);
      EXPECT_EQ(read_one(pair.left), std::errc::timed_out);
      EXPECT_GE(steady_clock::now() - start, 20ms);
      EXPECT_EQ(code_of([&] { pair.left.write("x"); }), std::errc::timed_out) << "expired before it began";
      pair.left.expires_after(20ms);
      EXPECT_EQ(write_until_error(pair.left), std::errc::timed_out);
      pair.left.expires_never();
      pair.right.write("y");
      EXPECT_EQ(read_one(pair.left), std::error_code()) << "a time-out breaks nothing";
      pair.left.expires_at(steady_clock::now() - 1s);
      EXPECT_EQ(code_of([&] { pair.left.read(&i, 1); }), std::errc::timed_out);
    }
  });
}

TEST_P(TcpClose, DataAndTimeOutRace) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    int received = 0;
    auto sender = spawn([&] {
      for (int i = 0; i < 300; ++i) {
        this_fiber::sleep_for(150us);
        pair.right.write("x");
      }
    });
    const auto end = steady_clock::now() + bound;
    while (received < 300 && steady_clock::now() < end) {
      pair.left.expires_after(150us);
      if (!read_one(pair.left)) ++received;
    }
    EXPECT_EQ(received, 300);
    sender.get();
  });
}

TEST_P(TcpClose, StopRequestEndsARead) {
  in_runtime([] {
    for (int i = 0; i < 20; ++i) {
      auto pair = make_pair(i);
      auto reader = spawn([&] {
        char c;
        pair.left.read_some(&c, 1);
      });
      auto second = spawn([&] { return read_one(pair.right); });
      if (i % 3) let_others_run();
      reader.request_stop();
      second.request_stop();
      EXPECT_THROW(reader.get(), operation_cancelled);
      EXPECT_EQ(second.get(), errc::cancelled);
      pair.right.write("x");
      EXPECT_EQ(read_one(pair.left), std::error_code()) << "the stream is as before";
    }
  });
}

TEST_P(TcpClose, StopRequestEndsAnAcceptAndAConnect) {
  in_runtime([] {
    net::tcp_listener listener(loopback());
    auto acceptor = spawn([&] { (void)listener.accept(); });
    let_others_run();
    acceptor.request_stop();
    EXPECT_THROW(acceptor.get(), operation_cancelled);
    auto sticky = spawn([&] { return net::tcp_stream::connect(listener.local_endpoint()).is_open(); });
    sticky.request_stop();
    try {
      EXPECT_TRUE(sticky.get());  // the request came too late
    } catch (const operation_cancelled&) {
    }
  });
}

TEST_P(TcpClose, EndOfTheRuntimeCancelsWhoWaits) {
  in_runtime([] {
    auto pair = std::make_shared<stream_pair>(stream_pair::tcp());
    pair->left.expires_never();
    for (int i = 0; i < 10; ++i)
      spawn([] {
        net::tcp_listener listener(loopback());
        (void)listener.accept();
      }).detach();
    spawn([pair] { read_one(pair->left); }).detach();
    let_others_run();
  });
}

TEST_P(TcpClose, ResetByThePeerIsAnError) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto reader = spawn([&] { return read_one(pair.right); });
    let_others_run();
    pair.left.abort();
    EXPECT_EQ(reader.get(), std::errc::connection_reset);
    EXPECT_EQ(code_of([&] { pair.right.write("x"); }), std::errc::broken_pipe) << "and no SIGPIPE";
  });
}

TEST_P(TcpClose, ResetWakesAWriter) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    auto writer = spawn([&] { return write_until_error(pair.right); });
    let_others_run();
    pair.left.abort();
    EXPECT_EQ(writer.get(), std::errc::connection_reset);
  });
}

TEST_P(TcpClose, SecondReaderIsMisuse) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    std::atomic<int> refused{0};
    const auto read_or_be_refused = [&] {
      try {
        EXPECT_EQ(read_one(pair.left), std::error_code());
      } catch (const usage_error&) {
        ++refused;
      }
    };
    auto first = spawn(read_or_be_refused), second = spawn(read_or_be_refused);
    for (const auto end = steady_clock::now() + bound; refused == 0 && steady_clock::now() < end;) this_fiber::yield();
    EXPECT_THROW((void)pair.left.release(), usage_error);
    pair.left.write("a writer is welcome");
    pair.right.write("x");
    first.get();
    second.get();
    EXPECT_EQ(refused, 1);
  });
}

TEST_P(TcpClose, ReleasedDescriptorIsTheCallers) {
  in_runtime([] {
    auto pair = stream_pair::unix_sockets();
    pair.right.write("xy");
    EXPECT_EQ(read_one(pair.left), std::error_code());
    const int fd = pair.left.release();
    EXPECT_FALSE(pair.left.is_open());
    char c;
    EXPECT_EQ(::read(fd, &c, 1), 1);
    auto again = net::tcp_stream::adopt(fd);
    again.write("z");
    EXPECT_EQ(read_one(pair.right), std::error_code());
    EXPECT_EQ(code_of([] { (void)net::tcp_stream::adopt(-1); }), std::errc::bad_file_descriptor);
  });
}

// A socket that belongs to another runtime is waited for all the same, and woken by a close.
TEST_P(TcpClose, FibersOfTwoRuntimesShareAStream) {
  runtime other({.threads = 1});
  in_runtime([&] {
    auto pair = stream_pair::tcp();
    auto first = spawn([&] { return read_one(pair.left); });
    let_others_run();
    auto writer = other.spawn([&] { return write_until_error(pair.left); });
    pair.right.write("x");
    EXPECT_EQ(first.get(), std::error_code());
    auto foreign_reader = other.spawn([&] { return read_one(pair.left); });
    pair.right.write("x");
    EXPECT_EQ(foreign_reader.get(), std::error_code());
    foreign_reader = other.spawn([&] { return read_one(pair.left); });
    let_others_run();
    pair.left.close();
    EXPECT_EQ(foreign_reader.get(), std::errc::bad_file_descriptor);
    EXPECT_EQ(writer.get(), std::errc::bad_file_descriptor);
  });
}

// A shutdown wakes such a waiter, after which the peer would read an orderly end.
TEST_P(TcpClose, AnAbortIsAResetWhileAFiberOfAnotherRuntimeWaits) {
  runtime other({.threads = 1});
  in_runtime([&] {
    for (int i = 0; i < 10; ++i) {
      auto pair = stream_pair::tcp();
      auto first = spawn([&] { return read_one(pair.left); });
      wait_until_others_wait();  // so the socket belongs to this runtime
      pair.right.write("x");
      EXPECT_EQ(first.get(), std::error_code());
      auto foreign = blocking([&] { return spawn_until_it_waits(other, [&] { return read_one(pair.left); }); });
      pair.left.abort();
      EXPECT_EQ(foreign.get(), std::errc::bad_file_descriptor);
      EXPECT_EQ(read_one(pair.right), std::errc::connection_reset);
    }
  });
}

TEST_P(TcpClose, StreamsOutliveTheirRuntime) {
  auto pair = stream_pair::tcp();
  net::tcp_listener listener;
  for (int i = 0; i < 2; ++i) {
    runtime rt({.threads = GetParam()});
    rt.run([&] {
      listener = net::tcp_listener(loopback());
      auto acceptor = spawn([&] { (void)listener.accept(); });
      auto reader = spawn([&] { return read_one(pair.left); });
      let_others_run();
      (void)net::tcp_stream::connect(listener.local_endpoint());
      pair.right.write("x");
      EXPECT_EQ(reader.get(), std::error_code());
      acceptor.get();
    });
  }
  pair.right.write("x");
  EXPECT_EQ(read_one(pair.left), std::error_code());
}

TEST(TcpCloseOnPlainThreads, WakesThem) {
  for (int i = 0; i < 10; ++i) {
    auto pair = make_pair(i);
    net::tcp_listener listener(i % 2 ? loopback()
                                     : net::endpoint::local("@ulexite_test." + std::to_string(::getpid())));
    std::thread reader([&] { EXPECT_EQ(read_one(pair.left), std::errc::bad_file_descriptor); });
    std::thread writer([&] { EXPECT_EQ(write_until_error(pair.left), std::errc::bad_file_descriptor); });
    std::thread acceptor([&] { EXPECT_EQ(code_of([&] { (void)listener.accept(); }), std::errc::bad_file_descriptor); });
    for (int turn = 0; turn < i * 100; ++turn) std::this_thread::yield();
    pair.left.close();
    listener.close();
    reader.join();
    writer.join();
    acceptor.join();
  }
}

TEST(TcpCloseOnPlainThreads, AMoveToItselfIsNone) {
  auto pair = stream_pair::tcp();
  net::tcp_stream& same = pair.left;
  pair.left = std::move(same);
  pair.right.write("x");
  EXPECT_EQ(read_one(pair.left), std::error_code());
}

}  // namespace
}  // namespace ulexite::test
