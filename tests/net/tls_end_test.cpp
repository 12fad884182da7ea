// What a tls_stream still does after its end of writing, a failed write, or the peer's end.

#include "support/waiting.hpp"
#include "tls_fixture.hpp"

#include <ulexite/coroutine.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/sync/when.hpp>

namespace ulexite::test {
namespace {

class TlsEnd : public Tls {};
ULEXITE_ON_ALL_WORKER_COUNTS(TlsEnd);

// A client and a server after their handshake.
struct tls_pair {
  explicit tls_pair(stream_pair under, const tls_context& client_side, const tls_context& server_side)
      : below(std::move(under)), client(below.left, client_side, "localhost"), server(below.right, server_side) {
    when_all([this] { client.handshake(); }, [this] { server.handshake(); });
  }
  stream_pair below;
  stream client, server;
};

std::string read_once(stream& from) {
  char part[100];
  return std::string(part, from.read_some(part, sizeof part));
}

TEST_P(TlsEnd, ASecondEndOfWritingLosesNoData) {
  in_runtime([] {
    tls_pair pair(stream_pair::tcp(), trusting(), serving());
    const std::string sent(16'384, 'x');
    pair.server.write(sent);
    pair.server.shutdown_write();
    std::string got(sent.size() / 2, ' ');
    got.resize(pair.client.read_some(got.data(), got.size()));
    pair.client.shutdown_write();
    pair.client.shutdown_write();
    got += read_to_end(pair.client);
    EXPECT_TRUE(got == sent);
  });
}

// It waits for the stream below only if there are no decrypted bytes, and no end.
TEST_P(TlsEnd, ACoroutineWaitsUntilAReadWouldNot) {
  in_runtime([] {
    tls_pair pair(stream_pair::tcp(), trusting(), serving());
    pair.below.left.expires_after(bound);
    auto reads = spawn([&]() -> task<> {
      net::buffered_reader in(pair.client);
      char got;
      for (const char expected : {'a', 'b', 'c'}) {
        co_await co_readable(pair.client);
        EXPECT_EQ(pair.client.read_some(&got, 1), 1u);
        EXPECT_EQ(got, expected);
      }
      co_await co_readable(in);
      EXPECT_EQ(in.read_line(), "line");
      co_await co_readable(in);
      EXPECT_EQ(in.read_line(), "rest");
      co_await co_readable(in);
      EXPECT_EQ(pair.client.read_some(&got, 1), 0u);
      co_await co_readable(pair.client);
    });
    for (const char* part : {"ab", "c", "line\nrest\n"}) {
      wait_until_others_wait();
      pair.server.write(part);
    }
    wait_until_others_wait();
    pair.server.shutdown_write();
    reads.get();
  });
}

TEST_P(TlsEnd, AFailureThatReadableHasMetIsToldToThePeer) {
  in_runtime([] {
    tls_pair pair(stream_pair::tcp(), trusting(), serving());
    pair.below.left.expires_after(bound);
    pair.client.write("good");
    pair.below.left.write(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));  // a record that is none
    spawn([&]() -> task<> {
      EXPECT_EQ(read_once(pair.server), "good");
      co_await co_readable(pair.server);
      EXPECT_THROW(read_once(pair.server), std::system_error);
      pair.below.right.shutdown_write();
    }).get();
    char got;
    std::error_code told;
    pair.client.read_some(&got, 1, told);
    EXPECT_NE(told.message().find("alert"), std::string::npos) << told.message();
  });
}

TEST_P(TlsEnd, ReadsContinueAfterAnExpiredWrite) {
  in_runtime([] {
    tls_pair pair(stream_pair::tcp(), trusting(), serving());
    pair.below.left.writes_expire_after(0s);
    std::error_code error;
    pair.client.write("question", error);
    EXPECT_EQ(error, std::errc::timed_out) << error.message();
    pair.server.write("answer");
    EXPECT_EQ(read_once(pair.client), "answer");
    pair.below.left.writes_expire_never();
    pair.client.write("!");
    pair.client.shutdown_write();
    EXPECT_EQ(read_to_end(pair.server), "question!");
  });
}

// As a server does that refuses a large upload.
TEST_P(TlsEnd, TheAnswerOfAPeerThatNoLongerReadsIsRead) {
  in_runtime([] {
    tls_pair pair(stream_pair::unix_sockets(), trusting(), serving());
    pair.server.write("too large");
    pair.server.shutdown_write();
    pair.below.right.shutdown_read();
    std::error_code error;
    pair.client.write("upload", error);
    EXPECT_EQ(error, std::errc::broken_pipe) << error.message();
    EXPECT_EQ(read_to_end(pair.client), "too large");
  });
}

// Each request for a key update is answered. No answer can be sent.
TEST_P(TlsEnd, APeerThatAsksIsRefusedAfterAnExpiredWriteToo) {
  in_runtime([] {
    tls_pair pair(stream_pair::tcp(), trusting(), serving());
    pair.below.right.writes_expire_after(0s);
    auto asking = spawn([&] {
      std::error_code error;
      while (!error) {
        on_thread_stack([&] { SSL_key_update(pair.client.native_handle(), SSL_KEY_UPDATE_REQUESTED); });
        pair.client.write("?", error);
      }
    });
    char byte;
    std::error_code error;
    while (!error) pair.server.read_some(&byte, 1, error);
    EXPECT_EQ(error, std::errc::no_buffer_space) << error.message();
    pair.below.right.abort();
    asking.get();
  });
}

TEST_P(TlsEnd, AnEndDuringTheHandshakeIsAnError) {
  in_runtime([] {
    auto pair = stream_pair::tcp();
    const auto client_side = trusting();
    pair.right.write(std::string_view("\x15\x03\x03\x00\x02\x01\x00", 7));  // close_notify
    stream client(pair.left, client_side, "localhost");
    std::error_code error;
    for (int i = 0; i < 2; ++i) {
      client.handshake(error);
      EXPECT_EQ(error, std::errc::connection_aborted) << error.message();
    }
    client.write("never sent", error);
    EXPECT_EQ(error, std::errc::connection_aborted) << error.message();
  });
}

}  // namespace
}  // namespace ulexite::test
