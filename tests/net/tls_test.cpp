// TLS over streams, also with the peers that OpenSSL ships.

#include "tls_fixture.hpp"

#include "support/watchdog.hpp"

#include <ulexite/net/buffered.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/when.hpp>

#include <openssl/ssl.h>
#include <ulexite/runtime/on_thread_stack.hpp>

#include <memory>

namespace ulexite::test {
namespace {

ULEXITE_ON_ALL_WORKER_COUNTS(Tls);

TEST_P(Tls, CarriesDataBothWays) {
  in_runtime([] {
    for (auto make : {stream_pair::tcp, stream_pair::unix_sockets}) {
      auto pair = make();
      const auto server_side = serving(), client_side = trusting();
      auto server = spawn([&] {
        stream secure(pair.right, server_side);
        net::buffered_reader in(secure);
        const auto line = in.read_line();
        EXPECT_EQ(line.value_or(""), "hello");
        EXPECT_EQ(secure.server_name(), "localhost");
        secure.write("you said hello\n");
        secure.shutdown_write();
        EXPECT_EQ(in.read_line(), std::nullopt);
      });
      stream secure(pair.left, client_side, "localhost");
      secure.handshake();
      EXPECT_EQ(secure.version(), "TLSv1.3");
      EXPECT_EQ(secure.alpn(), "");
      secure.write("hello\n");
      EXPECT_EQ(read_to_end(secure), "you said hello\n");
      secure.shutdown_write();
      EXPECT_THROW(secure.write("more"), std::system_error);
      server.get();
    }
  });
}

// Each side writes much while it reads much; a deadlock of the two would be one of the buffers between.
TEST_P(Tls, OneFiberReadsWhileAnotherWrites) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    const std::string much(3'000'000, 'x'), more(2'000'000, 'y');
    const auto both = [](stream& secure, const std::string& out) {
      return std::get<1>(when_all(
          [&] {
            secure.write(out);
            secure.shutdown_write();
          },
          [&] { return read_to_end(secure); }));
    };
    auto server = spawn([&] {
      stream secure(pair.right, server_side);
      return both(secure, more) == much;
    });
    stream secure(pair.left, client_side, "127.0.0.1");
    EXPECT_TRUE(both(secure, much) == more);
    EXPECT_TRUE(server.get());
  });
}

// A stream that notes the fibers which write large parts.
class noting {
 public:
  explicit noting(net::tcp_stream& under) : under_(under) {}
  std::size_t read_some(void* data, std::size_t size, std::error_code& error) {
    return under_.read_some(data, size, error);
  }
  std::size_t read_some(void* data, std::size_t size) { return under_.read_some(data, size); }
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error) {
    if (size > 10'000) writers.insert(this_fiber::id());  // one caller at a time
    return under_.write_some(data, size, error);
  }
  std::size_t write_some(const void* data, std::size_t size) { return under_.write_some(data, size); }

  std::set<std::uint64_t> writers;

 private:
  net::tcp_stream& under_;
};

// Because a reader that waits for the peer to read does not read itself.
TEST_P(Tls, AReaderDoesNotSendWhatAWriterHasWritten) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    noting below(pair.left);
    tls_stream client(below, client_side, "localhost");
    stream server(pair.right, server_side);
    auto peer = spawn([&] {
      server.handshake();
      when_all(
          [&] {
            for (int i = 0; i < 2'000; ++i) server.write("ping");
            server.shutdown_write();
          },
          [&] { read_to_end(server); });
    });
    client.handshake();
    std::uint64_t writer = 0;
    when_all(
        [&] {
          writer = this_fiber::id();
          for (int i = 0; i < 1'000; ++i) client.write(std::string(16'384, 'x'));
          client.shutdown_write();
        },
        [&] {
          char part[10];
          while (client.read_some(part, sizeof part) > 0) {
          }
        });
    peer.get();
    EXPECT_EQ(below.writers, std::set{writer});
  });
}

TEST_P(Tls, RefusesCertificatesThatAreNotTrustedOrOfAnother) {
  in_runtime([] {
    const auto server_side = serving();
    const auto attempt = [&](const tls_context& context, const std::string& name) {
      auto pair = stream_pair::tcp();
      auto server = spawn([&] {
        stream secure(pair.right, server_side);
        std::error_code error;
        secure.handshake(error);
        char byte;
        if (!error) secure.read_some(&byte, 1, error);
        return error;
      });
      std::string told;
      {
        stream secure(pair.left, context, name);
        try {
          secure.handshake();
        } catch (const std::system_error& failure) {
          EXPECT_EQ(failure.code().category(), tls_category());
          told = failure.what();
          std::error_code again;
          secure.write("x", 1, again);
          EXPECT_EQ(again, failure.code());
        }
      }
      pair.left.close();
      EXPECT_TRUE(server.get());  // an alert, or the end
      return told;
    };
    EXPECT_NE(attempt(tls_context::client(), "localhost").find("self-signed certificate"), std::string::npos);
    EXPECT_NE(attempt(trusting(), "example.org").find("hostname mismatch"), std::string::npos);
    EXPECT_NE(attempt(trusting(), "127.0.0.2").find("IP address mismatch"), std::string::npos);
    EXPECT_EQ(attempt(trusting(), "127.0.0.1"), "");
    tls_context careless = tls_context::client();
    careless.trust_everything();
    EXPECT_EQ(attempt(careless, "example.org"), "");
  });
}

// The time limit of the client's last message is met once. So a second call has to send it.
TEST_P(Tls, AHandshakeHasSucceededWhenItsLastMessageIsSent) {
  struct gate {
    net::tcp_stream& under;
    int writes = 0;
    std::size_t read_some(void* data, std::size_t size, std::error_code& error) {
      return under.read_some(data, size, error);
    }
    std::size_t read_some(void* data, std::size_t size) { return under.read_some(data, size); }
    std::size_t write_some(const void* data, std::size_t size, std::error_code& error) {
      if (++writes != 2) return under.write_some(data, size, error);
      error = std::make_error_code(std::errc::timed_out);
      return 0;
    }
    std::size_t write_some(const void* data, std::size_t size) { return under.write_some(data, size); }
  };
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto client_side = trusting(), server_side = serving();
    gate under{pair.left};
    tls_stream<gate> client(under, client_side, "localhost");
    auto server = spawn([&] {
      stream secure(pair.right, server_side);
      std::error_code error;
      secure.handshake(error);
      return error;
    });
    std::error_code error;
    client.handshake(error);
    EXPECT_EQ(error, std::errc::timed_out);
    client.handshake(error);
    EXPECT_FALSE(error);
    EXPECT_FALSE(server.get());  // would wait for ever
  });
}

TEST_P(Tls, AWriteAfterTheEndOfWritingFailsAlone) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    when_all([&] { client.handshake(); }, [&] { server.handshake(); });
    client.shutdown_write();
    std::error_code error;
    EXPECT_EQ(client.write_some("x", 1, error), 0U);
    EXPECT_EQ(error, std::errc::broken_pipe) << error.message();
    server.write("answer");
    server.shutdown_write();
    EXPECT_EQ(read_to_end(client), "answer");
  });
}

TEST_P(Tls, AnExpiryOrCancellationLosesNothing) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    when_all([&] { client.handshake(); }, [&] { server.handshake(); });
    char part[100];
    pair.left.expires_after(1ms);
    std::error_code error;
    client.read_some(part, sizeof part, error);
    EXPECT_EQ(error, std::errc::timed_out);
    EXPECT_THROW(client.read_some(part, sizeof part), std::system_error);
    pair.left.expires_never();
    EXPECT_THROW(timeout(1ms, [&] { client.read_some(part, sizeof part); }), deadline_exceeded);
    // The peer does not read: the write is cut in the middle of its records, and the next one goes on.
    const std::string much(20'000'000, 'z');
    std::size_t taken = 0;
    try {
      timeout(20ms, [&] {
        while (taken < much.size()) taken += client.write_some(much.data() + taken, much.size() - taken);
      });
    } catch (const deadline_exceeded&) {
    }
    EXPECT_LT(taken, much.size());
    const auto [rest, got] = when_all(
        [&] {
          client.write(std::string_view(much).substr(taken));
          client.shutdown_write();
        },
        [&] { return read_to_end(server); });
    EXPECT_TRUE(got == much);
  });
}

TEST_P(Tls, ACallerThatWaitsForTheHandshakeOfAnotherIsCancellable) {
  in_runtime([] {
    auto pair = stream_pair::tcp();  // whose right end is silent
    const auto client_side = trusting();
    stream client(pair.left, client_side, "localhost");
    auto writing = spawn([&] { client.write("never sent"); });
    let_others_run();
    char byte;
    EXPECT_THROW(timeout(20ms, [&] { client.read_some(&byte, 1); }), deadline_exceeded);
    writing.request_stop();
    EXPECT_THROW(writing.get(), operation_cancelled);
  });
}

// Each request for a key update is answered. The client reads none of the answers, and the server's writer waits for
// it.
TEST_P(Tls, APeerThatAsksAndDoesNotReadIsRefused) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    when_all([&] { client.handshake(); }, [&] { server.handshake(); });
    auto writing = spawn([&] {
      std::error_code error;
      server.write(std::string(50'000'000, 'x'), error);
    });
    auto asking = spawn([&] {
      std::error_code error;
      while (!error) {
        on_thread_stack([&] { SSL_key_update(client.native_handle(), SSL_KEY_UPDATE_REQUESTED); });
        client.write("?", error);
      }
    });
    char byte;
    std::error_code error;
    while (!error) server.read_some(&byte, 1, error);
    EXPECT_EQ(error, std::errc::no_buffer_space) << error.message();
    pair.right.abort();
    writing.get();
    asking.get();
  });
}

TEST_P(Tls, AConnectionThatIsCutIsAnError) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    when_all([&] { client.handshake(); }, [&] { server.handshake(); });
    server.write("part");
    pair.right.close();
    char part[100];
    EXPECT_EQ(client.read_some(part, sizeof part), 4U);
    std::error_code error;
    EXPECT_EQ(client.read_some(part, sizeof part, error), 0U);
    EXPECT_EQ(error.category(), tls_category());
    EXPECT_EQ(error, std::errc::connection_aborted);
    EXPECT_NE(error.message().find("unexpected eof"), std::string::npos);

    auto plain = stream_pair::tcp();  // its peer does not speak TLS
    plain.right.write("HTTP/1.0 400 What?\r\n\r\n");
    stream confused(plain.left, client_side, "localhost");
    EXPECT_THROW(confused.handshake(), std::system_error);
    confused.handshake(error);
    EXPECT_NE(error, std::errc::connection_aborted);
  });
}

// OpenSSL would touch a third page. No other fiber has used a stack of this size.
TEST_P(Tls, LeavesTheStackOfItsFiberAlone) {
  if (sanitized) GTEST_SKIP() << "frames are larger";
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto server_side = serving(), client_side = trusting();
    const auto talk = [](stream& secure) {
      secure.write("hello");
      char part[5];
      EXPECT_EQ(secure.read_some(part, sizeof part), 5U);
      secure.shutdown_write();
      EXPECT_EQ(secure.read_some(part, sizeof part), 0U);
      EXPECT_LE(this_fiber::stack().high_water, 8192U);
    };
    stream client(pair.left, client_side, "localhost"), server(pair.right, server_side);
    auto other = spawn({.stack_size = 16384}, [&] { talk(server); });
    spawn({.stack_size = 16384}, [&] { talk(client); }).get();
    other.get();
  });
}

TEST_P(Tls, TalksToOpenssl) {
  in_runtime([] {
    const auto server_side = serving();
    net::tcp_listener listener(loopback());
    auto server = spawn([&] {
      auto client = listener.accept();
      client.expires_after(bound);
      stream secure(client, server_side);
      net::buffered_reader in(secure);
      const auto line = in.read_line();
      secure.write("echo " + std::string(line.value_or("none")) + "\n");
      secure.shutdown_write();
    });
    const std::string command = "(echo hello; sleep 0.2) | openssl s_client -quiet -verify_return_error -CAfile " +
                                mine->certificate + " -connect " + listener.local_endpoint().str() + " 2>&1";
    const auto out = os::output_of({.arguments = {"sh", "-c", command}, .out = os::stdio::pipe}).out;
    EXPECT_NE(out.find("echo hello"), std::string::npos) << out;
    server.get();
  });
}

}  // namespace
}  // namespace ulexite::test
